// class_has_no_such_constructor<
#include "batchrpc/batchrpc.hpp"

struct Store {
  explicit Store(int) {}
};

void refused(const batchrpc::Node& node) { node.expose_class<Store(std::string)>(); }
