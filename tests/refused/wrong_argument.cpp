// argument_does_not_convert<2, const char (&)[4], int>
#include "batchrpc/batchrpc.hpp"

int add(int a, int b);

batchrpc::Future<int> refused(const batchrpc::Node& node) {
  const int sum = co_await node.call<&add>("b", 1, "two");
  co_return sum;
}
