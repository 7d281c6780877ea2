// this is no function with one signature
#include "batchrpc/batchrpc.hpp"

void refused(const batchrpc::Node& node) {
  node.expose("same", [](auto x) { return x; });
}
