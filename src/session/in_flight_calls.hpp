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
  /// id, which cost no more than others.
  [[nodiscard]] bool add(detail::CallState& call);
  /// Removes the call. Does nothing for a call that is not in the table.
  void remove(const detail::CallState& call);
  /// Removes and returns the call; null: there is none.
  [[nodiscard]] detail::Ref<detail::CallState> take(std::uint64_t id);
  /// Returns all calls, in the order in which they came.
  [[nodiscard]] std::vector<detail::Ref<detail::CallState>> all();
  /// No more calls can be added. Those that are left are taken with take_next(). Takes neither
  /// memory nor time, however many there are.
  void close() noexcept;
  /// Removes and returns the call that came first. Null: there is none, or the table is not closed.
  [[nodiscard]] detail::Ref<detail::CallState> take_next() noexcept;

 private:
  using Link = detail::CallState*;

  [[nodiscard]] std::size_t bucket_of(std::uint64_t id) const noexcept;
  static void link(Link& first, detail::CallState& call) noexcept;
  void resize(std::size_t buckets);
  void unlink(detail::CallState& call) noexcept;

  std::mutex mutex_;           // guards the members below
  std::vector<Link> buckets_;  // A power of two. Each bucket is a list by CallState::next_kept_.
  Link first_ = nullptr;       // in the order in which they came, a list by CallState::next_come_
  Link last_ = nullptr;
  std::size_t size_ = 0;
  bool closed_ = false;
};

}  // namespace batchrpc
