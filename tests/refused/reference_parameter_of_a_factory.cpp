// an exposed function cannot change its caller's arguments
#include "batchrpc/batchrpc.hpp"

struct Store {};
Store make(int&) { return {}; }

void refused(const batchrpc::Node& node) { node.expose_factory<&make>(); }
