// parameter_cannot_be_received<1, const char
#include "batchrpc/batchrpc.hpp"

void print(const char* text);

void refused(const batchrpc::Node& node) { node.expose<&print>(); }
