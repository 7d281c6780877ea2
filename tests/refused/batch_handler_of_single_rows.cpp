// handler_does_not_take_all_rows<std::vector<float
#include "batchrpc/batchrpc.hpp"

void refused() {
  const batchrpc::Batcher<int(float)> batcher({.max_size = 8},
                                              [](float x) { return static_cast<int>(x); });
}
