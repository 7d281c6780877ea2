// it_has_no_single_signature
#include <functional>

#include "batchrpc/batchrpc.hpp"

int add(int a, int b) { return a + b; }

void refused(const batchrpc::Node& node) { node.expose("add", std::bind_front(&add, 3)); }
