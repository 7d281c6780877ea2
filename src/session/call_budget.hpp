#pragma once

#include <algorithm>
#include <cstdint>

#include "batchrpc/base/ref.hpp"
#include "batchrpc/call/byte_budget.hpp"
#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

/// Bounds the memory that the calls of one peer take at this node: those that wait, those that run
/// and have not answered, and those whose payloads are still coming in, which count as a whole. It
/// holds without any NodeOptions::limits.calls. All sessions of one peer share it: copies count
/// together. See docs/decisions/0016. Thread-safe.
class CallBudget {
 public:
  /// What the calls of a peer may take beyond NodeOptions::limits.max_outstanding_bytes. A caller
  /// with the same options has at most max_outstanding_bytes of unfinished calls, or half of that
  /// beside a larger one. It counts only what it sends, not what describes the calls here, nor the
  /// calls of handlers that call back.
  static constexpr std::uint64_t kBeyondCredit = std::uint64_t{256} << 20;

  explicit CallBudget(const NodeLimits& limits)
      : program_(new detail::ByteBudget(limit_of(limits))),
        library_(new detail::ByteBudget(kLibraryBytes)) {}

  /// The budget for calls of the program's functions, or of the library's own.
  [[nodiscard]] detail::ByteBudget& of(bool of_program) const noexcept {
    return of_program ? *program_ : *library_;
  }

 private:
  // Honest peers come nowhere near that: the library's calls are small and answered soon.
  static constexpr std::uint64_t kLibraryBytes = std::uint64_t{256} << 20;

  static std::uint64_t limit_of(const NodeLimits& limits) noexcept {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    return kBeyondCredit + std::min(limits.max_outstanding_bytes, kMost);
  }

  detail::Ref<detail::ByteBudget> program_;
  detail::Ref<detail::ByteBudget> library_;
};

}  // namespace batchrpc
