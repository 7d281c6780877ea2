// it_is_a_method_of_an_object
#include "batchrpc/batchrpc.hpp"

struct Table {};
struct Store {
  Table table() { return {}; }
};

void refused(const batchrpc::Node& node) { node.create<&Store::table>("owner"); }
