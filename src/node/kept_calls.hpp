#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "batchrpc/node/call_state.hpp"

namespace batchrpc {

/// The calls of one peer that outlive their message, by id, until they are answered. Thread-safe.
class KeptCalls {
 public:
  /// False when it is closed. Of two calls with one id, only the first is known.
  [[nodiscard]] bool add(const std::shared_ptr<detail::CallState>& call);
  void remove(const detail::CallState& call);
  /// The call, which leaves; null: there is none.
  [[nodiscard]] std::shared_ptr<detail::CallState> take(std::uint64_t id);
  /// All of them; none comes in any more.
  [[nodiscard]] std::vector<std::shared_ptr<detail::CallState>> close();

 private:
  using Calls = std::unordered_map<std::uint64_t, std::shared_ptr<detail::CallState>>;
  void trim();

  std::mutex mutex_;  // guards what follows
  Calls calls_;
  bool closed_ = false;
};

}  // namespace batchrpc
