// a method makes an object by the handle of its own
#include "batchrpc/batchrpc.hpp"

struct Table {};
struct Store {
  Table table() { return {}; }
};

void refused(const batchrpc::Node& node) { node.create<&Store::table>("owner"); }
