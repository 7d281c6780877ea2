// the_name_comes_first
#include "batchrpc/batchrpc.hpp"

int add(int a, int b) { return a + b; }

void refused(const batchrpc::Node& node) { node.expose<&add>("add", {.short_handler = true}); }
