// the class has no public constructor that takes these types
#include "batchrpc/batchrpc.hpp"

struct Store {
  explicit Store(int) {}
};

void refused(const batchrpc::Node& node) { node.expose_class<Store(std::string)>(); }
