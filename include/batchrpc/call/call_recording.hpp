#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/operator_source.hpp"
#include "batchrpc/trace/record_sink.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc::detail {

/// What a callee records of one call, or of one run of a batch's handler: times, and what is
/// caused. Thread-safe.
class BATCHRPC_EXPORT CallRecording final : public OperatorSink, public RecordSink {
 public:
  /// So many operators and calls are kept; further ones are counted.
  static constexpr std::size_t kMaxEvents = 4096;
  /// So many levels of calls, which calls have made in their turn; deeper ones are counted.
  static constexpr unsigned kMaxDepth = 8;

  /// The call has come. `operators`: who asks wants them, too. `source` tells of those that run
  /// here, and is never destroyed; null: nothing does.
  CallRecording(std::shared_ptr<Loop> clock, bool operators,
                const OperatorSource* source = nullptr);

  void add(OperatorRecord&& record) noexcept override;
  void add(CallRecord&& record) noexcept override;
  void lost(std::size_t events) noexcept override;
  [[nodiscard]] TimePoint now() const noexcept override { return clock_->now(); }
  [[nodiscard]] const OperatorSource* source() const noexcept override { return source_; }
  [[nodiscard]] const std::shared_ptr<Loop>& clock() const noexcept { return clock_; }
  [[nodiscard]] bool wants_operators() const noexcept override {
    return operators_ || (own_sink_ && own_sink_->wants_operators());
  }

  /// Has the whole record go to `sink`, too, by report_own(): the callee's own. `known`: of whom it
  /// is. `told`: the caller is told as well. Before anything else.
  void show(std::shared_ptr<RecordSink> sink, CallRecord&& known, bool told);
  /// Whether the caller wants to be told.
  [[nodiscard]] bool is_told() const noexcept { return told_; }

  /// The calling thread has begun with it; counts once.
  void note_begun();
  /// What a run of a batch's handler has caused.
  struct Caused {
    CallRecord record{};
    std::uint64_t operators_left_out = 0;  // of those in record.left_out: its own operators
  };
  /// It is a row of `batch`, or with null its handler has made rows, for which a handler has run
  /// until now; `shared`: for other calls, too.
  void note_run(const BatchRecord* batch, const Caused& caused, bool shared) noexcept;
  /// The function has its result, or has failed with that kind of error: what was recorded, which
  /// is the callee's side of the call, as who asks wants it. Nothing is taken any more. Again:
  /// nothing is left.
  CallRecord finish(std::string error = {});
  /// After finish(), when the reply is known, and before it leaves: the callee's own sink gets the
  /// record. `bytes_in`: of the reply; 0: there is none. Again: does nothing.
  void report_own(std::uint64_t bytes_in);
  /// What was caused until now, which is forgotten here: of a run.
  [[nodiscard]] Caused take();

 private:
  [[nodiscard]] bool has_room(std::size_t events);

  const std::shared_ptr<Loop> clock_;
  const bool operators_;
  const OperatorSource* const source_;
  std::shared_ptr<RecordSink> own_sink_;  // null: none
  std::optional<CallRecord> own_;         // for that, when it is finished
  bool told_ = true;
  std::mutex mutex_;
  CallRecord record_;
  std::size_t events_ = 0;
  std::uint64_t operators_left_out_ = 0;  // of those in the record's left_out: its own operators
  bool finished_ = false;
};

}  // namespace batchrpc::detail
