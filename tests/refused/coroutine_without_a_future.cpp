// unable to find the promise type for this coroutine
#include "batchrpc/batchrpc.hpp"

int add(int a, int b);

int refused(const batchrpc::Node& node) { co_return co_await node.call<&add>("b", 1, 2); }
