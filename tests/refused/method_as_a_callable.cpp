// it_is_a_method_of_an_object
#include "batchrpc/batchrpc.hpp"

struct Counter {
  int add(int n);
};

void refused(const batchrpc::Node& node) { node.expose("add", &Counter::add); }
