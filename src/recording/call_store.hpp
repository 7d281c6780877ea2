#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/record_sink.hpp"

namespace batchrpc {

/// Keeps the records of calls, as many as there is room for. Thread-safe.
class BATCHRPC_EXPORT CallStore final : public detail::RecordSink {
 public:
  /// Makes a store with room for `max_events` calls and operators.
  CallStore(std::size_t max_events, bool operators)
      : max_events_(max_events), operators_(operators) {}

  void add(CallRecord&& record) noexcept override;
  void lost(std::size_t events) noexcept override;
  [[nodiscard]] bool wants_operators() const noexcept override { return operators_; }

  /// Returns the calls from number `first` on: complete calls with about `max_events` events in
  /// total, at least one call.
  [[nodiscard]] std::vector<CallRecord> copy(std::size_t first, std::size_t max_events) const;
  /// Returns all calls. Copies in parts, so that calls may be added meanwhile.
  [[nodiscard]] std::vector<CallRecord> copy() const;
  [[nodiscard]] std::size_t size() const;
  /// The number of calls and operators that are kept from number `first` on, including those that
  /// were left out of them.
  [[nodiscard]] std::uint64_t events(std::size_t first) const;
  /// The number of calls and operators that were not kept.
  [[nodiscard]] std::uint64_t left_out() const;

 private:
  const std::size_t max_events_;
  const bool operators_;
  mutable std::mutex mutex_;
  std::deque<CallRecord> calls_;
  std::size_t events_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace batchrpc
