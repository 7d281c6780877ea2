#pragma once

#include <cstddef>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::test {

/// Promises, and a future of each.
template <class T>
struct Several {
  explicit Several(std::size_t count) : promises(count) {
    for (auto& promise : promises)
      futures.push_back(promise.get_future());
  }
  std::vector<Promise<T>> promises;
  std::vector<Future<T>> futures;
};

}  // namespace batchrpc::test
