// objects of an abstract class cannot be created: expose a class that implements it
#include "batchrpc/batchrpc.hpp"

struct Interface {
  virtual ~Interface() = default;
  virtual int use() = 0;
};

void refused(const batchrpc::Node& node) { node.expose_class<Interface()>(); }
