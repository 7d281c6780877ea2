// parameter_is_a_reference<1, int&>
#include "batchrpc/batchrpc.hpp"

int increase(int& n);

void refused(const batchrpc::Node& node, int n) { node.call<&increase>("worker1", n); }
