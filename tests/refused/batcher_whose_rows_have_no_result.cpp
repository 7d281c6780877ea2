// the rows of a batcher are values that have results
#include <vector>

#include "batchrpc/batchrpc.hpp"

void refused() {
  batchrpc::Batcher<void(int)> log({.max_size = 8}, [](const std::vector<int>& /*rows*/) {});
}
