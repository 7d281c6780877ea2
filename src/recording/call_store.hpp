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
  /// Room for so many calls and operators.
  CallStore(std::size_t max_events, bool operators)
      : max_events_(max_events), operators_(operators) {}

  void add(CallRecord&& record) noexcept override;
  void lost(std::size_t events) noexcept override;
  [[nodiscard]] bool wants_operators() const noexcept override { return operators_; }

  /// What is kept from number `first` on: whole calls, of about so many events together, at least
  /// one.
  [[nodiscard]] std::vector<CallRecord> copy(std::size_t first, std::size_t max_events) const;
  /// All of it, a part after the other: meanwhile calls may be added.
  [[nodiscard]] std::vector<CallRecord> copy() const;
  [[nodiscard]] std::size_t size() const;
  /// How many calls and operators are kept from number `first` on, with what was left out of them.
  [[nodiscard]] std::uint64_t events(std::size_t first) const;
  /// Calls and operators that were not kept.
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
