#pragma once

#include <exception>
#include <stdexcept>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc::env {

/// Runs code of the program: its environments or its policy. A batchrpc error that it throws, for
/// example from a call that it makes, says nothing about the worker itself. It becomes a
/// std::runtime_error, after which a driver does not retry.
template <class Run>
decltype(auto) run_program_code(Run&& run) {
  try {
    return std::forward<Run>(run)();
  } catch (const Error& error) {
    throw std::runtime_error(type_name(std::current_exception()) + ": " + error.what());
  }
}

}  // namespace batchrpc::env
