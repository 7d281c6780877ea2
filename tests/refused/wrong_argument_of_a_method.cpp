// argument_does_not_convert<1, const char (&)[4], int>
#include "batchrpc/batchrpc.hpp"

struct Counter {
  int add(int n);
};

void refused(const batchrpc::RRef<Counter>& counter) { counter.call<&Counter::add>("two").get(); }
