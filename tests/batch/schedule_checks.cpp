#include <algorithm>
#include <string>

#include "batch/schedule.hpp"

// What must hold in a schedule, at each step and for each batch.
namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

}  // namespace

// One mistake makes many: the first ones tell.
void Schedule::complain(const std::string& what) {
  note("WRONG: ", what);
  if (complaints_.size() < 5) complaints_.push_back(what);
}

// --- batches

void Schedule::adopt_choice() {
  if (model_.options().latency_target.latency == Duration::zero()) return;
  const BatchStatistics now = batcher_->statistics();
  model_.choose({now.size, now.min_size, now.wait});
}

ModelBatch& Schedule::begin_batch(int key) {
  adopt_choice();
  const std::uint64_t full =
      batcher_->statistics().reasons.at(static_cast<std::size_t>(BatchReason::full));
  const bool for_room = full > reasons_.at(static_cast<std::size_t>(BatchReason::full));
  ModelBatch& batch =
      for_room ? model_.begin_for_room(key, loop_->now()) : model_.begin(loop_->now());
  note("batch of ", batch.calls.size(), " by ", to_string(batch.reason));
  ++batches_;
  if (reduces_) ++runs_;
  ++reasons_.at(static_cast<std::size_t>(batch.reason));
  ++happened_["batch by " + std::string(to_string(batch.reason))];
  check_start(batch);
  return batch;
}

void Schedule::check_start(const ModelBatch& batch) {
  if (model_.paused()) complain("a batch starts in a pause");
  if (model_.running() > batch.options->parallelism)
    complain("more batches run at once than parallelism allows");
  bool accumulated = false;
  for (const Call* call : batch.calls) {
    accumulated = accumulated || call->accumulated;
    if (!call->accumulated && call->deadline && *call->deadline <= batch.started)
      complain("an expired row runs");
    if (call->key() != batch.calls.front()->key()) complain("two keys in one batch");
    check_wait(*call, batch.started);
  }
  if (rows_of(batch.calls) > batch.options->max_size && batch.calls.size() > 1 && !accumulated)
    complain("a batch is larger than max_size");
}

// At most max_wait, and the time of the batches that its place in the queue puts before it.
void Schedule::check_wait(const Call& call, TimePoint started) {
  if (!plain_) return;
  const BatchOptions& options = model_.options();
  const auto batches = static_cast<Duration::rep>(call.ahead / options.max_size + 1);
  if (started - call.arrived > options.max_wait + batches * 800us)
    complain("a row waited for too long");
}

// While others have the mutex, nothing of the batcher's runs.
void Schedule::check_lock() {
  if (guard_ && exclusive_) complain("rows run while another has the mutex");
}

void Schedule::check_run(ModelBatch& batch, const ScheduledCalls& calls,
                         const std::vector<Row>& rows, const BatchInfo& info) {
  std::size_t at = 0;
  for (const Call* call : calls) {
    for (const Row& row : call->rows) {
      if (at >= rows.size() || rows[at].number != row.number)
        return complain("the handler got other rows, or in another order");
      ++at;
    }
  }
  if (rows.size() != at + info.padding) complain("the handler got another number of rows");
  for (; at < rows.size(); ++at) {
    if (rows[at].number != calls.back()->rows.back().number)
      complain("the padding is not the last row's");
  }
  const auto& sizes = batch.options->preferred_sizes;
  if (!sizes.empty() && std::find(sizes.begin(), sizes.end(), rows.size()) == sizes.end()) {
    complain("a batch has no preferred size");
  }
  check_info(batch, calls, info);
}

// `calls` are the batch's, or its half's.
void Schedule::check_info(ModelBatch& batch, const ScheduledCalls& calls, const BatchInfo& info) {
  const bool again =
      std::any_of(calls.begin(), calls.end(), [](const Call* call) { return call->ran; });
  if (!again && !reduces_ && calls.size() != batch.calls.size())
    complain("calls of a batch are missing");
  if (info.calls.size() != calls.size()) return complain("a batch has other calls than it should");
  if (info.rows != rows_of(calls)) complain("a batch says that it has another number of rows");
  if (info.started != batch.started) complain("a batch says that it began at another time");
  if (!plain_ && !reduces_ && info.key != std::to_string(calls.front()->key()))
    complain("a batch says that it has another key");
  // Which of the two it was is not known where the batcher chooses the size.
  const bool chosen = batch.options->latency_target.latency > Duration::zero() &&
                      batch.reason == BatchReason::preferred && info.reason == BatchReason::size;
  if (chosen) {
    --reasons_.at(static_cast<std::size_t>(batch.reason));
    batch.reason = info.reason;
    ++reasons_.at(static_cast<std::size_t>(batch.reason));
  }
  if (info.reason != batch.reason) {
    complain("a batch started by " + std::string(to_string(info.reason)) + ", not by " +
             std::string(to_string(batch.reason)));
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = *calls[i];
    const BatchInfo::Call& part = info.calls[i];
    if (part.first_row != at || part.rows != call.rows.size()) complain("a call has another place");
    if (part.caller != call.caller) complain("a call has another's caller");
    if (part.arrived != call.arrived) complain("a call has another's arrival");
    if (part.deadline != call.deadline) complain("a call has another's deadline");
    if (part.priority != (priorities_ ? call.priority() : 0))
      complain("a call has another's priority");
    at += call.rows.size();
  }
  check_order(calls, batch);
  for (Call* call : calls)
    call->ran = true;
}

void Schedule::check_order(const ScheduledCalls& calls, const ModelBatch& batch) {
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const Call& a = *calls[i - 1];
    const Call& b = *calls[i];
    const int rank_a = a.caller ? a.caller->rank : -2;
    const int rank_b = b.caller ? b.caller->rank : -2;
    if (batch.options->order_by_peer) {
      if (rank_a > rank_b) complain("rows are not in the order of ranks");
    } else if (!priorities_ && !held_ && b.arrived < a.arrived) {
      complain("rows are not in the order of their arrival");
    }
  }
}

// --- calls

void Schedule::completed(Call& call, const std::vector<int>* results, ErrorCode code) {
  if (call.completed) complain("a call completes twice");
  call.completed = true;
  if (results == nullptr) {
    check_error(call, code);
  } else {
    if (call.fate != Fate::answered) complain("a call is answered that should not be");
    if (*results != call.results) complain("a call has another's results");
    ++happened_["answer"];
  }
  rows_of_fate_.at(static_cast<std::size_t>(call.fate)) += call.rows.size();
  model_.completed(call);
  if (finishing_ != nullptr && finishing_->open == 0) {
    finishing_ = nullptr;
    has_begun_ = false;
  }
}

void Schedule::check_error(Call& call, ErrorCode code) {
  ++happened_["error " + std::string(to_string(code))];
  const bool gives_way =
      std::any_of(may_give_way_.begin(), may_give_way_.end(), [&](const ScheduledCalls& way) {
        return std::find(way.begin(), way.end(), &call) != way.end();
      });
  if (code == ErrorCode::timed_out && call.waits()) {
    model_.expire(loop_->now());
  } else if (code == ErrorCode::overloaded && gives_way) {
    gave_way_.push_back(&call);
    model_.drop(call, Fate::rejected, ErrorCode::overloaded);
    ++happened_["gave way"];
  }
  if (call.fate == Fate::open || call.fate == Fate::answered) {
    complain("a call fails that should not: " + std::string(to_string(code)));
  } else if (call.error != code) {
    complain("a call fails with " + std::string(to_string(code)) + " instead of " +
             std::string(to_string(*call.error)));
  }
}

// All of one of the ways, and no others; or none, where the call may be refused.
void Schedule::check_who_gave_way(BatchModel::Verdict& verdict) {
  if (may_give_way_.empty()) return;
  if (gave_way_.empty()) {
    if (!verdict.may_be_refused) complain("nobody gave way to a caller that has less");
    verdict.refused = ErrorCode::overloaded;
  } else if (std::none_of(may_give_way_.begin(), may_give_way_.end(), [this](auto& way) {
               return std::is_permutation(way.begin(), way.end(), gave_way_.begin(),
                                          gave_way_.end());
             })) {
    complain("others gave way than should");
  }
  may_give_way_.clear();
}

// What is to be told at once has been.
void Schedule::settle() {
  for (const Call* call : model_.unsettled()) {
    if (call->completed) continue;
    complain("a call does not fail when it should, with " + std::string(to_string(*call->error)));
  }
  model_.unsettled().clear();
}

// --- steps

void Schedule::check_step() {
  settle();
  adopt_choice();
  const BatchStatistics now = batcher_->statistics();
  const BatchOptions& options = model_.options();
  const auto same = [this](const char* what, std::uint64_t is, std::uint64_t should) {
    if (is == should) return;
    complain(std::to_string(is) + " " + what + ", not " + std::to_string(should));
  };
  same("rows are queued", now.queued, rows_of(model_.queue()));
  same("rows are held", now.held, model_.held_rows());
  same("bytes are queued", now.queued_bytes, model_.bytes());
  same("batches run", now.running, model_.running());
  if (now.queued > std::max(options.max_queue, before_.queued) && model_.queue().size() > 1)
    complain("more rows wait than max_queue");
  if (now.held > std::max(options.max_queue, before_.held))
    complain("more rows are held than max_queue");
  if (now.queued_bytes > std::max(options.max_queue_bytes, before_.queued_bytes))
    complain("more bytes wait than max_queue_bytes");
  before_ = now;
  if (model_.has_expired(loop_->now())) complain("a row waits though its deadline has passed");
  if (model_.closed() && model_.is_empty() && closed_ < closings_)
    complain("all is over, and close() is not");
  check_choice(now);
  check_counts(now);
  // Which may be why something waits, also for a start that was told to wait for the mutex.
  if (guard_ || asked_for_mutex_ || exclusive_runs() || tasks_ > 0) return;
  if (model_.is_late(loop_->now())) complain("rows wait that should run");
  if (model_.is_stuck()) complain("rows wait for others that they leave no room for");
  if (reduces_ && model_.next_to_accumulate() != nullptr)
    complain("a row waits that should be added up");
}

void Schedule::check_choice(const BatchStatistics& now) {
  const LatencyTarget& target = model_.options().latency_target;
  const BatchModel::InForce& model = model_.in_force();
  if (now.size != model.size || now.min_size != model.min_size || now.wait != model.wait)
    complain("another choice is in force than should be");
  if (now.size > model_.options().max_size) complain("a size is chosen beyond max_size");
  if (target.latency == Duration::zero()) return;
  if (now.wait > std::chrono::duration_cast<Duration>(target.latency / target.percentile))
    complain("a wait is chosen beyond the target");
}

void Schedule::check_counts(const BatchStatistics& now) {
  const auto check = [this](Fate fate, std::uint64_t counted) {
    const std::uint64_t rows = rows_of_fate_.at(static_cast<std::size_t>(fate));
    if (counted == rows) return;
    complain(std::to_string(counted) + " rows are counted of " + std::to_string(rows) +
             " of fate " + std::to_string(static_cast<int>(fate)));
  };
  check(Fate::rejected, now.rejected);
  check(Fate::invalid, now.invalid);
  check(Fate::expired, now.expired);
  check(Fate::cancelled, now.cancelled);
  check(Fate::left, now.left);
  check(Fate::dropped, now.dropped);
  if (now.running > 0) return;  // the others are counted at a batch's end
  check(Fate::answered, now.answered);
  check(Fate::failed, now.failed);
  std::uint64_t rows = 0;
  for (const Call& call : calls_)
    rows += call.rows.size();
  if (now.rows != rows) complain("rows that came are not counted");
  if (now.batches != batches_) complain("the batches are not counted");
  if (now.handler_runs != runs_) complain("the runs of the handler are not counted");
  if (now.padding != padding_) complain("the padding is not counted");
  if (now.reasons != reasons_) complain("the reasons of batches are not counted");
}

void Schedule::check_end() {
  for (const Call& call : calls_) {
    if (!call.completed) complain("a call was never completed");
  }
  const BatchStatistics s = batcher_->statistics();
  if (s.queued + s.held + s.running != 0) complain("something is left behind");
  if (s.rows != s.rejected + s.invalid + s.expired + s.cancelled + s.left + s.dropped + s.answered +
                    s.failed) {
    complain("the statistics do not add up:\n" + to_string(s));
  }
  batcher_.reset();
  if (!handlers_.empty()) complain("the batcher's handlers outlive it");
  if (token_.use_count() > 1) complain("the batcher's handler outlives it");
  if (loop_->pending() > 0) complain("the batcher's timers outlive it");
}

}  // namespace batchrpc::test
