// wrong_number_of_arguments<2, 1>
#include "batchrpc/batchrpc.hpp"

int add(int a, int b);

void refused(const batchrpc::Node& node) { node.call<&add>("b", 1).get(); }
