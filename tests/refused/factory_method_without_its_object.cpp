// a method creates an object through the handle of its own object
#include "batchrpc/batchrpc.hpp"

struct Table {};
struct Store {
  Table table() { return {}; }
};

void refused(const batchrpc::Node& node) { node.create<&Store::table>("owner"); }
