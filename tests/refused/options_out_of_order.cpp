// designator order|cannot be reordered
#include "batchrpc/batchrpc.hpp"

void refused() { batchrpc::Node({.join = "tcp://127.0.0.1:1", .name = "a"}); }
