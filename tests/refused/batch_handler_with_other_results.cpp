// handler_does_not_return_a_result_of_each_row<std::vector<float
#include "batchrpc/batchrpc.hpp"

#include <vector>

void refused() {
  const batchrpc::Batcher<int(float)> batcher({.max_size = 8},
                                              [](std::vector<float> xs) { return xs; });
}
