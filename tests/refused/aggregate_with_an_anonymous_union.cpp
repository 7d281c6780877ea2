// parameter_cannot_be_sent<1, Either>
#include "batchrpc/batchrpc.hpp"

struct Either {
  int id;
  union {
    float real;
    int whole;
  };
};
int show(Either either) { return either.id; }

void refused(const batchrpc::Node& node) { node.expose<&show>(); }
