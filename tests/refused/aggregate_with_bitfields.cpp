// parameter_cannot_be_sent<1, Flags>
#include "batchrpc/batchrpc.hpp"

struct Flags {
  unsigned one : 1;
  unsigned three : 3;
  int id;
};
int show(Flags flags) { return flags.id; }

void refused(const batchrpc::Node& node) { node.expose<&show>(); }
