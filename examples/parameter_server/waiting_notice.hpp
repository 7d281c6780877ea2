#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "common/notice.hpp"
#include "parameter_server/options.hpp"

namespace batchrpc_examples {

/// Prints a notice after a while, from its own thread, unless it is destroyed before.
class WaitingNotice {
 public:
  WaitingNotice(std::string notice, std::chrono::milliseconds after,
                std::function<void(const std::string&)> notify = say)
      : thread_([notice = std::move(notice), after,
                 notify = std::move(notify)](const std::stop_token& destroyed) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any never;
          never.wait_for(lock, destroyed, after, [] { return false; });
          if (!destroyed.stop_requested()) notify(notice);
        }) {}

 private:
  std::jthread thread_;
};

/// A notice while a process waits for another one. Processes that were launched together need none.
inline std::optional<WaitingNotice> notice_of_waiting(const ParameterServerOptions& options,
                                                      const std::string& for_whom) {
  if (options.launched || options.rank == 0) return std::nullopt;
  return WaitingNotice(node_options(options).name + " waits for " + for_whom,
                       std::chrono::seconds(10));
}

}  // namespace batchrpc_examples
