#pragma once

#include <string>
#include <utility>
#include <vector>

#include "batchrpc/torch/operators.hpp"
#include "node/virtual_world.hpp"

namespace torch_test {

/// Node b has the operators, node a calls them.
struct ExposedOperators : batchrpc::test::NodePair {
  explicit ExposedOperators(const std::vector<std::string>& names) {
    batchrpc::expose_operators(b, names);
  }

  template <class Function, class... Args>
  auto call(const char* name, Args&&... args) {
    return a.call<Function>("b", name, std::forward<Args>(args)...).get();
  }
  /// The error that it ends in.
  template <class Function, class... Args>
  batchrpc::Error fails(const char* name, Args&&... args) {
    try {
      (void)a.call<Function>("b", name, std::forward<Args>(args)...).get();
    } catch (const batchrpc::Error& error) {
      return error;
    }
    return batchrpc::Error(batchrpc::ErrorCode{}, "it has not failed", false);
  }
};

}  // namespace torch_test
