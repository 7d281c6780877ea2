#pragma once

#include <exception>
#include <stdexcept>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc::env {

/// Runs what the program has brought: its environments, its policy. An error of batchrpc's that
/// comes out of them, as of a call that they make, says nothing of the worker itself: it becomes a
/// std::runtime_error, after which a driver does not ask again.
template <class Run>
decltype(auto) run_program_code(Run&& run) {
  try {
    return std::forward<Run>(run)();
  } catch (const Error& error) {
    throw std::runtime_error(type_name(std::current_exception()) + ": " + error.what());
  }
}

}  // namespace batchrpc::env
