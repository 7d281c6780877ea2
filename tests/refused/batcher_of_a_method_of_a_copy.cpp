// a method needs a pointer to its object
#include <vector>

#include "batchrpc/batchrpc.hpp"

struct Policy {
  std::vector<float> act(const std::vector<float>& rows) { return rows; }
};

void refused(const Policy& policy) {
  batchrpc::Batcher<float(float)> act({.max_size = 8}, &Policy::act, policy);
}
