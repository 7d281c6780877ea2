// parameter_is_a_reference<1, int&>
#include "batchrpc/batchrpc.hpp"

int increment(int& number) { return ++number; }

void refused(const batchrpc::Node& node) { node.expose<&increment>({.short_handler = true}); }
