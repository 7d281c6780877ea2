// result_is_a_reference_to_a_future
#include "batchrpc/batchrpc.hpp"

batchrpc::Future<int>& shared();

void refused(const batchrpc::Node& node) { node.expose<&shared>(); }
