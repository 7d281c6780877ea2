// constructor_has_no_parameter_list<Counter>
#include "batchrpc/batchrpc.hpp"

struct Counter {
  explicit Counter(int start);
};

void refused(const batchrpc::Node& node) { node.expose_class<Counter>(); }
