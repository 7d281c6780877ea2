// argument_does_not_convert<1, const char (&)[4], int>
#include "batchrpc/batchrpc.hpp"

struct Counter {
  explicit Counter(int start);
};

void refused(const batchrpc::Node& node) { node.create<Counter(int)>("b", "two").ready().get(); }
