// parameter_is_a_reference<1, int&>
#include "batchrpc/batchrpc.hpp"

struct Store {};
Store make(int&) { return {}; }

void refused(const batchrpc::Node& node) { node.expose_factory<&make>(); }
