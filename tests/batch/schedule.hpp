#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "batch/schedule_model.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/testing.hpp"

namespace batchrpc::test {

/// A random life of a batcher in virtual time: arrivals, deadlines, cancellations, deaths, changed
/// settings, a mutex that others hold, handlers and reducers that take their time, throw, or answer
/// row by row. Holds it against a model (BatchModel), and notes what must not be.
class Schedule {
 public:
  /// `log`, where there is one, is told what happens.
  explicit Schedule(std::uint64_t seed, std::ostream* log = nullptr);
  ~Schedule();

  /// Lives it to the end.
  void run();
  /// What was wrong; empty: nothing.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
  /// Of the events that happened, those of each kind, to see that none is never there.
  [[nodiscard]] const std::map<std::string, int>& happened() const { return happened_; }

 private:
  using Call = ScheduledCall;
  using Results = std::vector<Result<int>>;
  struct Peer {
    std::shared_ptr<const PeerIdentity> identity;
    bool live = true;
  };
  /// The reducer; what it does is the schedule's.
  struct Summing {
    void begin() { schedule->begin_sum(); }
    void accumulate(const Row& row) { schedule->accumulate(row); }
    Future<int> finish(const BatchInfo& info) { return schedule->finish(info); }
    Schedule* schedule;
    std::shared_ptr<int> token;
  };

  // Of what it is made; schedule.cpp.
  [[nodiscard]] bool chance(double probability) {
    return std::uniform_real_distribution<>()(random_) < probability;
  }
  [[nodiscard]] std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  [[nodiscard]] Duration some_time(std::size_t most_us) {
    return std::chrono::microseconds(below(most_us));
  }
  class ScheduleHost;
  [[nodiscard]] BatchModel model();
  [[nodiscard]] BatchOptions some_options();
  void make_batcher();
  [[nodiscard]] Call& some_call();
  void pass(Duration time);

  // What happens; schedule_events.cpp.
  void arrive();
  void stop(Call& call);
  void die_or_return();
  void change_settings();
  void note_options(const BatchOptions& options);
  void take_mutex();
  void event();
  void end();
  void close(BatchClose how);

  // What is done with rows; schedule_handlers.cpp.
  Future<Results> handle(std::vector<Row> rows, const BatchInfo& info);
  Results answer(const ModelBatch& batch, const ScheduledCalls& calls, bool miscounts);
  void begin_sum();
  void accumulate(const Row& row);
  Future<int> finish(const BatchInfo& info);
  [[nodiscard]] Call* next_to_accumulate();
  void fail_accumulation(Call& call);
  template <class T>
  Future<T> later(std::function<T()> make);

  // What must hold; schedule_checks.cpp.
  void complain(const std::string& what);
  template <class... Parts>
  void note(const Parts&... parts) {
    if (log_ == nullptr) return;
    const std::chrono::duration<double, std::micro> now = loop_->now() - start_;
    ((*log_ << now.count() << " us: ") << ... << parts) << '\n';
  }
  void adopt_choice();
  ModelBatch& begin_batch(int key);
  void check_run(ModelBatch& batch, const ScheduledCalls& calls, const std::vector<Row>& rows,
                 const BatchInfo& info);
  void check_info(ModelBatch& batch, const ScheduledCalls& calls, const BatchInfo& info);
  void check_order(const ScheduledCalls& calls, const ModelBatch& batch);
  void check_start(const ModelBatch& batch);
  void check_wait(const Call& call, TimePoint started);
  void check_lock();
  void check_choice(const BatchStatistics& now);
  void check_counts(const BatchStatistics& now);
  void check_step();
  void check_end();
  void settle();
  void completed(Call& call, const std::vector<int>* results, ErrorCode code);
  void check_error(Call& call, ErrorCode code);
  void check_who_gave_way(BatchModel::Verdict& verdict);

  [[nodiscard]] bool exclusive_runs() const { return exclusive_ && model_.running() > 0; }
  [[nodiscard]] Call& call_of(const Row& row) {
    return calls_[static_cast<std::size_t>(row.number / 100)];
  }

  std::mt19937_64 random_;
  std::ostream* log_;
  std::shared_ptr<VirtualLoop> loop_;
  const TimePoint start_;
  std::shared_ptr<Executor> workers_;
  std::size_t tasks_ = 0;  // that wait for busy workers
  bool plain_;  // one key, no priorities, no changes, one batch at a time: waits can be bounded
  bool reduces_;
  bool priorities_;
  bool exclusive_;       // batches have the mutex
  bool held_ = false;    // callers come in turn
  std::size_t keys_;     // that rows have
  std::size_t weights_;  // of a row, below
  std::vector<Peer> peers_;
  std::map<std::uint64_t, std::function<void()>> handlers_;
  std::uint64_t next_handler_ = 1;
  std::shared_ptr<AsyncMutex> mutex_ = std::make_shared<AsyncMutex>();
  BatchModel model_;
  AsyncMutex::Guard guard_;
  bool asked_for_mutex_ = false;
  std::shared_ptr<int> token_ = std::make_shared<int>();  // which the batcher's handler has, too
  std::optional<Batcher<int(Row)>> batcher_;
  std::deque<Call> calls_;
  ModelBatch* finishing_ = nullptr;  // whose rows the reducer gets
  int sum_ = 0;
  bool has_begun_ = false;
  ScheduledCalls gave_way_;
  std::vector<ScheduledCalls> may_give_way_;
  BatchStatistics before_;  // at the last step
  std::size_t closings_ = 0;
  std::size_t closed_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t padding_ = 0;
  std::array<std::uint64_t, kBatchReasons> reasons_{};
  std::array<std::uint64_t, kFates> rows_of_fate_{};
  std::map<std::string, int> happened_;
  std::vector<std::string> complaints_;
};

}  // namespace batchrpc::test
