// result_cannot_be_sent<Link>
#include "batchrpc/batchrpc.hpp"

struct Link {
  int* next;
};
Link find(int n);

void refused(const batchrpc::Node& node) { node.expose<&find>(); }
