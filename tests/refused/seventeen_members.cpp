// parameter_cannot_be_sent<1, Wide>
#include "batchrpc/batchrpc.hpp"

struct Wide {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};

void refused(const batchrpc::Node& node) { node.call<int(Wide)>("b", "sum", Wide{}).get(); }
