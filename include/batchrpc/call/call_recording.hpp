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

/// What a callee records of one call, or of one run of a batch's handler: its times, and the
/// operators and calls that it causes. Thread-safe.
class BATCHRPC_EXPORT CallRecording final : public OperatorSink, public RecordSink {
 public:
  /// The number of operators and calls that are kept. Further ones are only counted.
  static constexpr std::size_t kMaxEvents = 4096;
  /// The number of levels of nested calls that are kept. Deeper ones are only counted.
  static constexpr unsigned kMaxDepth = 8;

  /// Begins when the call has come. `operators`: the caller wants operators, too. `source` reports
  /// the operators that run here, and is never destroyed; null: nothing reports them.
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

  /// Sends the whole record to the callee's own `sink`, too, in report_own(). `known` says which
  /// call it is. `told`: the caller gets it as well. Call this before all other functions.
  void show(std::shared_ptr<RecordSink> sink, CallRecord&& known, bool told);
  /// Whether the caller gets the record.
  [[nodiscard]] bool is_told() const noexcept { return told_; }

  /// Notes that the calling thread has begun with the call. Only the first time counts.
  void note_begun();
  /// What a run of a batch's handler has caused.
  struct Caused {
    CallRecord record{};
    std::uint64_t operators_left_out = 0;  // its own operators among record.left_out
  };
  /// Notes a run of a batch's handler that ends now. The call is a row of `batch`; null: the call's
  /// handler has made the rows. `shared`: the run was for other calls, too.
  void note_run(const BatchRecord* batch, const Caused& caused, bool shared) noexcept;
  /// Ends the recording: the function has its result, or has failed with that kind of error.
  /// Returns the callee's side of the call, with what the caller wants of it. A second call returns
  /// nothing.
  CallRecord finish(std::string error = {});
  /// Gives the callee's own sink the record, after finish() and before the reply leaves.
  /// `bytes_in`: the bytes of the reply; 0: there is none. A second call does nothing.
  void report_own(std::uint64_t bytes_in);
  /// Returns what a run has caused until now, and forgets it.
  [[nodiscard]] Caused take();

 private:
  [[nodiscard]] bool has_room(std::size_t events);

  const std::shared_ptr<Loop> clock_;
  const bool operators_;
  const OperatorSource* const source_;
  std::shared_ptr<RecordSink> own_sink_;  // null: none
  std::optional<CallRecord> own_;         // for own_sink_, from finish() to report_own()
  bool told_ = true;
  std::mutex mutex_;
  CallRecord record_;
  std::size_t events_ = 0;
  std::uint64_t operators_left_out_ = 0;  // its own operators among record_.left_out
  bool finished_ = false;
};

}  // namespace batchrpc::detail
