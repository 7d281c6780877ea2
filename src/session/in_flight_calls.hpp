#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "batchrpc/call/call_state.hpp"

namespace batchrpc {

/// The calls of one peer that outlive their message, by id, until they are answered. Each is
/// removed before it is destroyed. Thread-safe.
class InFlightCalls {
 public:
  /// False when it is closed. Of calls with one id, one is found.
  [[nodiscard]] bool add(detail::CallState& call);
  /// Does nothing for a call that is not in it.
  void remove(const detail::CallState& call);
  /// The call, which leaves; null: there is none.
  [[nodiscard]] detail::Ref<detail::CallState> take(std::uint64_t id);
  /// All of them, by their ids.
  [[nodiscard]] std::vector<detail::Ref<detail::CallState>> all() { return list(false); }
  /// The same, which leave; none comes in any more.
  [[nodiscard]] std::vector<detail::Ref<detail::CallState>> close() { return list(true); }

 private:
  using Link = detail::CallState*;

  [[nodiscard]] std::size_t bucket_of(std::uint64_t id) const noexcept;
  [[nodiscard]] std::vector<detail::Ref<detail::CallState>> list(bool and_close);
  void resize(std::size_t buckets);
  void unlink(Link& link);

  std::mutex mutex_;           // guards what follows
  std::vector<Link> buckets_;  // a power of two; each a list, by CallState::next_kept_
  std::size_t size_ = 0;
  bool closed_ = false;
};

}  // namespace batchrpc
