#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/trace/operator_source.hpp"
#include "recording/call_store.hpp"

namespace batchrpc {

/// Who records a node's calls, and what goes along with them beside their arguments. Thread-safe.
class CallTracer {
 public:
  /// `seed`: of the ids of spans. `operators`: NodeOptions::operators.
  explicit CallTracer(std::uint64_t seed, const detail::OperatorSource* operators = nullptr)
      : seed_(seed), operators_(operators) {}

  /// From now on one in `every` calls that the node makes goes to `sink`, and of those that it
  /// answers if `answered`, until remove().
  BATCHRPC_EXPORT void add(std::shared_ptr<detail::RecordSink> sink, std::uint64_t every,
                           bool answered);
  BATCHRPC_EXPORT void remove(const detail::RecordSink& sink);

  /// Has others see what `store` keeps, as long as that lives.
  BATCHRPC_EXPORT void show(const std::shared_ptr<CallStore>& store, std::uint64_t every);
  /// Where in the stores that were shown: store by store.
  struct Position {
    std::uint64_t store = 0;
    std::uint64_t call = 0;
  };
  /// Some of what they keep.
  struct Shown {
    std::vector<CallRecord> calls{};
    Position next{};
    bool more = false;           ///< there is something at `next`
    std::uint64_t left_out = 0;  ///< by stores of which this is the end
    std::uint64_t sampled = 1;
  };
  /// What is at `from`, of about so many events.
  [[nodiscard]] Shown shown(Position from, std::size_t max_events) const;
  /// The rest of the store there, without its calls, which count as left out.
  [[nodiscard]] Shown rest(Position from) const;

  /// Whether a call that the calling thread makes now may have to be recorded.
  [[nodiscard]] bool is_active() const noexcept {
    return count_.load(std::memory_order_relaxed) > 0 || CallContext::current_extras() != nullptr ||
           is_watched();
  }

  /// Adds to `extras`, which say what the options of a call ask for, what goes along with it as the
  /// calling thread makes it. Null: nothing does.
  void complete(std::shared_ptr<detail::OutgoingExtras>& extras, std::string_view caller,
                std::string_view peer, std::string_view function);

  /// Where a call of the program goes that has come in now; null: nowhere.
  [[nodiscard]] std::shared_ptr<detail::RecordSink> sink_of_answered() {
    return answered_.load(std::memory_order_relaxed) == 0 ? nullptr : next_sink_of_answered();
  }

  /// The place of a call in its trace: below `parent`, or the first of a new one.
  [[nodiscard]] TraceContext next_span(const TraceContext& parent, bool recorded) noexcept;

 private:
  struct Recorder {
    std::shared_ptr<detail::RecordSink> sink;
    std::uint64_t every = 1;
    bool answered = false;
  };

  // A store that is shown and lives.
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
  const detail::OperatorSource* const operators_;  // null: nothing tells of operators
  std::atomic<std::uint64_t> ids_{0};
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> answered_{0};  // of these, who wants calls that are answered
  struct ShownStore {
    std::weak_ptr<CallStore> store;
    std::uint64_t number = 0;
    std::uint64_t every = 1;
  };

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Recorder> recorders_;
  std::vector<ShownStore> stores_;  // by their numbers
  std::uint64_t next_store_ = 0;
};

}  // namespace batchrpc
