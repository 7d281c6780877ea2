#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "batchrpc/node/call_extras.hpp"
#include "batchrpc/node/remote_call.hpp"

namespace batchrpc {

/// Who records a node's calls, and what goes along with them beside their arguments. Thread-safe.
class CallTracer {
 public:
  /// `seed`: of the ids of spans.
  explicit CallTracer(std::uint64_t seed) : seed_(seed) {}

  /// From now on one in `every` calls of the node goes to `sink`, until remove().
  void add(std::shared_ptr<detail::RecordSink> sink, std::uint64_t every);
  void remove(const detail::RecordSink& sink);

  /// Whether a call that the calling thread makes now may have to be recorded.
  [[nodiscard]] bool is_active() const noexcept {
    return count_.load(std::memory_order_relaxed) > 0 || CallContext::current_extras() != nullptr ||
           is_watched();
  }

  /// What goes along with a call of the program to `peer` by the calling thread; null: nothing.
  /// `asked`: by the call's options, or null.
  [[nodiscard]] std::shared_ptr<const detail::OutgoingExtras> extras_of_call(
      const std::shared_ptr<const detail::OutgoingExtras>& asked, std::string_view caller,
      std::string_view peer, std::string_view function);

  /// The place of a call in its trace: below `parent`, or the first of a new one.
  [[nodiscard]] TraceContext next_span(const TraceContext& parent, bool recorded) noexcept;

 private:
  struct Recorder {
    std::shared_ptr<detail::RecordSink> sink;
    std::uint64_t every = 1;
    std::uint64_t calls = 0;
  };

  [[nodiscard]] static bool is_watched() noexcept;
  [[nodiscard]] std::uint64_t next_id() noexcept;
  void add_recorders(std::vector<std::shared_ptr<detail::RecordSink>>& sinks);

  const std::uint64_t seed_;
  std::atomic<std::uint64_t> ids_{0};
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;  // guards what follows
  std::vector<Recorder> recorders_;
};

}  // namespace batchrpc
