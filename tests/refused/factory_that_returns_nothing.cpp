// factory_returns_no_object
#include "batchrpc/batchrpc.hpp"

void reset(int seed);

void refused(const batchrpc::Node& node) { node.expose_factory<&reset>(); }
