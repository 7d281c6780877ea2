// an exposed function cannot change its caller's arguments
#include "batchrpc/batchrpc.hpp"

struct Store {
  int increase(int& n) { return ++n; }
};

void refused(const batchrpc::Node& node) { node.expose<&Store::increase>(); }
