// class_is_abstract<Interface>
#include "batchrpc/batchrpc.hpp"

struct Interface {
  virtual ~Interface() = default;
  virtual int use() = 0;
};

void refused(const batchrpc::Node& node) { node.expose_class<Interface()>(); }
