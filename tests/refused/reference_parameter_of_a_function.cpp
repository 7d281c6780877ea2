// parameter_is_a_reference<1, int&>
#include "batchrpc/batchrpc.hpp"

int increase(int& n) { return ++n; }

void refused(const batchrpc::Node& node) { node.expose<&increase>(); }
