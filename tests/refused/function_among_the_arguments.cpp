// name the function in angle brackets
#include "batchrpc/batchrpc.hpp"

int add(int a, int b);

void refused(const batchrpc::Node& node) { node.call("b", &add, 1, 2).get(); }
