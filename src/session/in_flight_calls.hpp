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
  /// Adds a call. False when the table is closed. Lookups find one of several calls with the same
  /// id.
  [[nodiscard]] bool add(detail::CallState& call);
  /// Removes the call. Does nothing for a call that is not in the table.
  void remove(const detail::CallState& call);
  /// Removes and returns the call; null: there is none.
  [[nodiscard]] detail::Ref<detail::CallState> take(std::uint64_t id);
  /// Returns all calls, sorted by id.
  [[nodiscard]] std::vector<detail::Ref<detail::CallState>> all() { return list(false); }
  /// Removes and returns all calls, sorted by id. No more can be added.
  [[nodiscard]] std::vector<detail::Ref<detail::CallState>> close() { return list(true); }

 private:
  using Link = detail::CallState*;

  [[nodiscard]] std::size_t bucket_of(std::uint64_t id) const noexcept;
  [[nodiscard]] std::vector<detail::Ref<detail::CallState>> list(bool and_close);
  void resize(std::size_t buckets);
  void unlink(Link& link);

  std::mutex mutex_;           // guards the members below
  std::vector<Link> buckets_;  // A power of two. Each bucket is a list by CallState::next_kept_.
  std::size_t size_ = 0;
  bool closed_ = false;
};

}  // namespace batchrpc
