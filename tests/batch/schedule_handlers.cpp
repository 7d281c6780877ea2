#include <algorithm>
#include <stdexcept>

#include "batch/schedule.hpp"

// What is done with a schedule's rows: by a handler of batches, or by a reducer.
namespace batchrpc::test {
namespace {

int answer_to(const Row& row) { return row.number * 3 + 7; }

}  // namespace

// At once, or after some time.
template <class T>
Future<T> Schedule::later(std::function<T()> make) {
  const Duration takes = chance(0.3) ? Duration::zero() : some_time(800);
  if (takes == Duration::zero()) return make_ready_future(make());
  Promise<T> promise;
  Future<T> future = promise.get_future();
  loop_->schedule(loop_->now() + takes,
                  [make = std::move(make), promise = std::move(promise)]() mutable {
                    try {
                      promise.set_value(make());
                    } catch (...) {
                      promise.set_error(std::current_exception());
                    }
                  });
  return future;
}

Future<Schedule::Results> Schedule::handle(std::vector<Row> rows, const BatchInfo& info) {
  Call& first = call_of(rows.front());
  ModelBatch& batch = first.batch == nullptr ? begin_batch(first.key()) : *first.batch;
  check_lock();
  const auto at = std::find(batch.calls.begin(), batch.calls.end(), &first);
  if (at == batch.calls.end()) {
    complain("a row runs that is not of the batch");
    return make_ready_future(Results(rows.size(), Result<int>(0)));
  }
  const auto left = static_cast<std::size_t>(batch.calls.end() - at);
  const ScheduledCalls calls(at,
                             at + static_cast<std::ptrdiff_t>(std::min(left, info.calls.size())));
  check_run(batch, calls, rows, info);
  ++runs_;
  padding_ += info.padding;
  if (!plain_ && chance(0.05)) loop_->advance(some_time(300));  // it holds up all else
  const bool miscounts = !plain_ && chance(0.01);
  return later<Results>([this, &batch, calls, padding = info.padding, miscounts] {
    Results results = answer(batch, calls, miscounts);
    for (std::size_t i = 0; i < padding; ++i)
      results.emplace_back(0);
    return results;
  });
}

Schedule::Results Schedule::answer(const ModelBatch& batch, const ScheduledCalls& calls,
                                   bool miscounts) {
  Results results;
  bool throws = false;
  for (Call* call : calls) {
    std::vector<int> answers;
    bool fails = false;
    for (const Row& row : call->rows) {
      throws = throws || row.fault == Row::Fault::throws;
      fails = fails || row.fault == Row::Fault::fails;
      answers.push_back(answer_to(row));
      if (row.fault == Row::Fault::fails) {
        results.emplace_back(std::make_exception_ptr(std::domain_error("fails")));
      } else {
        results.emplace_back(answers.back());
      }
    }
    if (fails) {
      call->fails(Fate::failed, ErrorCode::remote_error);
    } else {
      call->is_answered(std::move(answers));
    }
  }
  const bool runs_again = throws && batch.options->isolate == Isolate::bisect && calls.size() > 1;
  for (Call* call : calls) {
    if (runs_again) {
      call->fate = Fate::open;
    } else if (throws) {
      call->fails(Fate::failed, ErrorCode::remote_error);
    } else if (miscounts) {
      call->fails(Fate::failed, ErrorCode::invalid_argument);
    }
  }
  if (runs_again) ++happened_["run again"];
  if (throws) throw std::domain_error("poison");
  if (miscounts) results.pop_back();
  return results;
}

// --- a reducer

// Of the batch that runs the rest of its calls, where there is one.
ScheduledCall* Schedule::next_to_accumulate() {
  if (finishing_ == nullptr && batcher_->statistics().running > 0) finishing_ = &begin_batch(0);
  if (finishing_ == nullptr) return model_.next_to_accumulate();
  for (Call* call : finishing_->calls) {
    if (!call->accumulated && call->fate == Fate::open) return call;
  }
  return nullptr;
}

void Schedule::fail_accumulation(Call& call) {
  if (finishing_ == nullptr) {
    model_.drop(call, Fate::failed, ErrorCode::remote_error);
    model_.admit_held();
  } else {
    call.fails(Fate::failed, ErrorCode::remote_error);
  }
  ++happened_["accumulation fails"];
  throw std::domain_error("poison");
}

void Schedule::begin_sum() {
  check_lock();
  Call* const next = next_to_accumulate();
  if (has_begun_) complain("a reducer begins twice");
  if (next != nullptr && chance(0.02)) fail_accumulation(*next);
  has_begun_ = true;
  sum_ = 0;
}

void Schedule::accumulate(const Row& row) {
  check_lock();
  Call& call = call_of(row);
  Call* const next = call.summed > 0 ? &call : next_to_accumulate();
  if (!has_begun_) complain("a reducer gets a row before it begins");
  if (next != &call || call.summed == call.rows.size() ||
      call.rows[call.summed].number != row.number) {
    return complain("a reducer gets a row that is not its turn, or that it has");
  }
  if (finishing_ == nullptr && call.summed == 0 && call.deadline && *call.deadline <= loop_->now())
    complain("a reducer gets a row that has expired");
  if (row.fault == Row::Fault::throws) fail_accumulation(call);
  if (chance(0.05)) loop_->advance(some_time(300));
  sum_ += answer_to(row);
  ++call.summed;
  call.accumulated = call.summed == call.rows.size();
  ++happened_[finishing_ == nullptr ? "accumulated early" : "accumulated at the end"];
}

Future<int> Schedule::finish(const BatchInfo& info) {
  if (next_to_accumulate() != nullptr) complain("a reducer finishes before it has all rows");
  if (!has_begun_) complain("a reducer finishes that has not begun");
  has_begun_ = false;
  if (finishing_ == nullptr) {
    complain("a reducer finishes without a batch");
    return make_ready_future(0);
  }
  ScheduledCalls calls;
  for (Call* call : finishing_->calls) {
    if (call->fate == Fate::open) calls.push_back(call);
  }
  check_lock();
  check_info(*finishing_, calls, info);
  int sum = 0;
  for (const Call* call : calls) {
    for (const Row& row : call->rows)
      sum += answer_to(row);
  }
  if (sum != sum_) complain("the sum is not that of the batch's rows");
  const bool fails = chance(0.05);
  return later<int>([calls, sum, fails] {
    for (Call* call : calls) {
      call->is_answered(std::vector<int>(call->rows.size(), sum));
      if (fails) call->fails(Fate::failed, ErrorCode::remote_error);
    }
    if (fails) throw std::domain_error("finish");
    return sum;
  });
}

}  // namespace batchrpc::test
