// it_has_no_name
#include "batchrpc/batchrpc.hpp"

void refused(const batchrpc::Node& node) {
  node.call<[](int n) { return n; }>("b", 1).get();
}
