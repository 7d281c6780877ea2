// the rows of a batcher are values that have results
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"

void refused() {
  batchrpc::Batcher<float(const std::string&)> lengths(
      {.max_size = 8},
      [](const std::vector<std::string>& rows) { return std::vector<float>(rows.size()); });
}
