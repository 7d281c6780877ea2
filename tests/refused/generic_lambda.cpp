// it_has_no_single_signature
#include "batchrpc/batchrpc.hpp"

void refused(const batchrpc::Node& node) {
  node.expose("same", [](auto x) { return x; });
}
