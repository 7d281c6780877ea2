#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/trace/operator_source.hpp"
#include "recording/call_store.hpp"

namespace batchrpc {

/// The recorders of a node's calls, and the extras that are sent with calls beside their arguments.
/// Thread-safe.
class CallTracer {
 public:
  /// `seed`: for the ids of spans. `operators`: NodeOptions::profiling.operators.
  explicit CallTracer(std::uint64_t seed, const detail::OperatorSource* operators = nullptr)
      : seed_(seed), operators_(operators) {}

  /// Records one in `every` calls that the node makes into `sink`, until remove(). If `answered`,
  /// also records calls that it answers.
  BATCHRPC_EXPORT void add(std::shared_ptr<detail::RecordSink> sink, std::uint64_t every,
                           bool answered);
  BATCHRPC_EXPORT void remove(const detail::RecordSink& sink);

  /// Makes the calls in `store` visible to others, as long as the store lives.
  BATCHRPC_EXPORT void show(const std::shared_ptr<CallStore>& store, std::uint64_t every);
  /// A position in the stores that were shown: store by store.
  struct Position {
    std::uint64_t store = 0;
    std::uint64_t call = 0;
  };
  /// A part of the calls in those stores.
  struct Shown {
    std::vector<CallRecord> calls{};
    Position next{};
    bool more = false;           ///< there are more calls at `next`
    std::uint64_t left_out = 0;  ///< left out by the stores that end here
    std::uint64_t sampled = 1;
  };
  /// Returns the calls at `from`, about `max_events` events.
  [[nodiscard]] Shown shown(Position from, std::size_t max_events) const;
  /// Returns the rest of the store at `from`, but without its calls, which count as left out.
  [[nodiscard]] Shown rest(Position from) const;

  /// Whether a call that the calling thread makes now may have to be recorded.
  [[nodiscard]] bool is_active() const noexcept {
    return count_.load(std::memory_order_relaxed) > 0 ||
           detail::ContextAccess::current_extras() != nullptr || is_watched();
  }

  /// Adds the extras that are sent with a call of the calling thread to `extras`, which has those
  /// from the options of the call. Null: there are none.
  void complete(std::shared_ptr<detail::OutgoingExtras>& extras, std::string_view caller,
                std::string_view peer, std::string_view function);

  /// Returns the sink for a call of the program that has come in now; null: it is not recorded.
  [[nodiscard]] std::shared_ptr<detail::RecordSink> sink_of_answered() {
    return answered_.load(std::memory_order_relaxed) == 0 ? nullptr : next_sink_of_answered();
  }

  /// Returns the position of a call in its trace: below `parent`, or the first of a new trace.
  [[nodiscard]] TraceContext next_span(const TraceContext& parent, bool recorded) noexcept;

 private:
  struct Recorder {
    std::shared_ptr<detail::RecordSink> sink;
    std::uint64_t every = 1;
    bool answered = false;
  };

  // A store that is shown and still lives.
  struct LivingStore {
    std::shared_ptr<CallStore> store;  // null: there is none
    std::uint64_t number = 0;
    std::uint64_t every = 1;
    bool more = false;  // another one comes after it
  };
  [[nodiscard]] LivingStore first_store(std::uint64_t from) const;
  [[nodiscard]] bool is_sampled(const Recorder& recorder) noexcept;
  void count_recorders();
  [[nodiscard]] std::shared_ptr<detail::RecordSink> next_sink_of_answered();
  // Whether the program's own profiler of LibTorch records the calling thread.
  [[nodiscard]] bool is_watched() const noexcept {
    return operators_ != nullptr && operators_->is_watched();
  }
  [[nodiscard]] std::uint64_t next_id() noexcept;
  void add_recorders(std::vector<std::shared_ptr<detail::RecordSink>>& sinks);

  const std::uint64_t seed_;
  const detail::OperatorSource* const operators_;  // null: operators are not recorded
  std::atomic<std::uint64_t> ids_{0};
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> answered_{0};  // the recorders of calls that are answered
  struct ShownStore {
    std::weak_ptr<CallStore> store;
    std::uint64_t number = 0;
    std::uint64_t every = 1;
  };

  mutable std::mutex mutex_;  // guards the members below
  std::vector<Recorder> recorders_;
  std::vector<ShownStore> stores_;  // by their numbers
  std::uint64_t next_store_ = 0;
};

}  // namespace batchrpc
