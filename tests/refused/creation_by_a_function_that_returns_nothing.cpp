// factory_returns_no_object
#include "batchrpc/batchrpc.hpp"

batchrpc::Future<void> reset(int seed);

void refused(const batchrpc::Node& node) { node.create<&reset>("worker1", 7); }
