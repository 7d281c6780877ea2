#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

/// Starts a thread that runs `work`. `purpose` completes "cannot start a thread for". Throws
/// Overloaded if the system starts no more threads.
template <class Work>
[[nodiscard]] std::thread start_thread(std::string_view purpose, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw Overloaded("cannot start a thread for " + std::string(purpose) + " (" + error.what() +
                     "); raise the limit of threads of the user (ulimit -u) or of the container "
                     "(pids.max), or use fewer threads");
  }
}

}  // namespace batchrpc
