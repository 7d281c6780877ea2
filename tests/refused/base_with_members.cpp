// parameter_cannot_be_sent<1, Derived>
#include "batchrpc/batchrpc.hpp"

struct Base {
  int a;
};
struct Derived : Base {
  int b;
};

void refused(const batchrpc::Node& node) { node.call<int(Derived)>("b", "sum", Derived{}).get(); }
