#include "batchrpc/batch/batch_run.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/batch/outside_of_calls.hpp"
#include "batchrpc/batch/recorded_batch.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::detail {
namespace {

// The most frequent kind; the first of them if several are equally frequent.
const std::string& most_common(const std::vector<std::string>& kinds) {
  const std::string* best = &kinds.front();
  std::ptrdiff_t best_count = 0;
  for (const std::string& kind : kinds) {
    if (best_count > 0 && kind == *best) continue;
    const auto count = std::count(kinds.begin(), kinds.end(), kind);
    if (count > best_count) best = &kind, best_count = count;
    if (static_cast<std::size_t>(count) * 2 >= kinds.size()) break;
  }
  return *best;
}

std::span<const std::pair<std::string, std::string>> metadata_of(const CallExtras* extras) {
  if (extras == nullptr) return {};
  return extras->metadata;
}

}  // namespace

BatchInfo describe_batch(const TakenBatch& batch, std::size_t first, std::size_t last,
                         std::size_t padding) {
  BatchInfo info;
  info.padding = padding;
  info.reason = batch.reason;
  info.started = batch.started;
  if (first < last) info.key = batch.calls[first]->key;
  info.calls.reserve(last - first);
  for (std::size_t i = first; i < last; ++i) {
    const BatchCall& call = *batch.calls[i];
    const CallExtras* const extras = call.extras.get();
    info.calls.push_back({.caller = call.caller,
                          .arrived = call.arrived,
                          .deadline = call.deadline,
                          .first_row = info.rows,
                          .rows = call.rows,
                          .priority = call.priority,
                          .trace = extras != nullptr ? extras->trace : TraceContext(),
                          .metadata = metadata_of(extras)});
    info.rows += call.rows;
  }
  return info;
}

void complete_calls(const TakenBatch& batch, std::size_t first, std::size_t last,
                    BatchOutcome& outcome, const CompleteCall& complete) {
  report_rows(batch, first, last);
  std::size_t row = 0;
  for (std::size_t i = first; i < last; ++i) {
    BatchCall& call = *batch.calls[i];
    const std::size_t rows = call.rows;
    try {
      (complete(call, row) ? outcome.answered : outcome.failed) += rows;
    } catch (...) {
      outcome.failed += rows;
      call.fail(std::current_exception(), true);
    }
    row += rows;
  }
}

void fail_calls(const TakenBatch& batch, std::size_t first, std::size_t last,
                const std::exception_ptr& error, BatchOutcome& outcome) {
  report_rows(batch, first, last);
  for (std::size_t i = first; i < last; ++i) {
    outcome.failed += batch.calls[i]->rows;
    batch.calls[i]->fail(error, true);
  }
}

BatchRun::BatchRun(TakenBatch batch, bool keyed) : batch_(std::move(batch)), keyed_(keyed) {}
BatchRun::~BatchRun() = default;

BatchEnd BatchRun::start() {
  try {
    if (keyed_) fail_misfits();
    in_place_order();
  } catch (...) {
    fail(0, batch_.calls.size(), std::current_exception());
    return std::move(outcome_);
  }
  const std::size_t count = batch_.calls.size();
  if (count == 0) return std::move(outcome_);
  Future<void> done = run(0, count);
  if (!done.valid()) return std::move(outcome_);
  return std::move(done).then(
      [self = shared_from_this()](const Result<void>&) { return std::move(self->outcome_); });
}

// Fails the calls that cannot be stacked because their kind differs from that of most others.
void BatchRun::fail_misfits() {
  std::vector<std::string> kinds;
  for (const auto& call : batch_.calls)
    kinds.push_back(kind_of(*call));
  const std::string& kind = most_common(kinds);
  const auto expected = std::find(kinds.begin(), kinds.end(), kind) - kinds.begin();
  const std::string wanted = shape_of(*batch_.calls[static_cast<std::size_t>(expected)]);
  std::size_t i = 0;
  std::erase_if(batch_.calls, [&](const std::unique_ptr<BatchCall>& call) {
    if (kinds[i++] == kind) return false;
    outcome_.invalid += call->rows;
    call->fail(misfit(*call, wanted), false);
    return true;
  });
}

std::exception_ptr BatchRun::misfit(BatchCall& call, const std::string& wanted) const noexcept {
  try {
    throw InvalidArgument("a row of a batch is " + shape_of(call) + ", but the others are " +
                          wanted + "; all rows of one key have one shape, type and device");
  } catch (...) {  // or the error that the program's description of a row throws
    return std::current_exception();
  }
}

// Rows that were received side by side keep the order in which they lie in memory.
void BatchRun::in_place_order() {
  const BatchOptions& options = *batch_.options;
  if (batch_.calls.size() < 2 || options.order_by_peer || options.isolate != Isolate::none) return;
  struct Placed {
    const void* place;
    BatchCall* call;
  };
  std::vector<Placed> order;
  for (const auto& call : batch_.calls) {
    const void* const place = place_of(*call);
    if (place == nullptr || call->priority != batch_.calls[0]->priority) return;
    if (order.empty()) order.reserve(batch_.calls.size());
    order.push_back({place, call.get()});
  }
  const auto is_before = [](const Placed& a, const Placed& b) {
    return std::less<const void*>()(a.place, b.place);
  };
  if (std::is_sorted(order.begin(), order.end(), is_before)) return;
  std::sort(order.begin(), order.end(), is_before);
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (!adjacent(*order[i - 1].call, *order[i].call)) return;
  }
  for (auto& call : batch_.calls)
    (void)call.release();
  for (std::size_t i = 0; i < order.size(); ++i)
    batch_.calls[i].reset(order[i].call);
}

bool BatchRun::is_divisible(const Share& share) const {
  return batch_.options->isolate == Isolate::bisect && share.last - share.first > 1;
}

BatchRun::Share BatchRun::share_of(std::size_t first, std::size_t last) const {
  Share share{.first = first, .last = last};
  for (std::size_t i = first; i < last; ++i)
    share.rows += batch_.calls[i]->rows;
  share.padding = padded_size(batch_.options->preferred_sizes, share.rows) - share.rows;
  return share;
}

// Runs the handler on the calls [first, last), and completes them. Does not throw. Returns an
// invalid future if that is done already.
Future<void> BatchRun::run(std::size_t first, std::size_t last) noexcept {
  const Share share = share_of(first, last);
  std::exception_ptr error;
  try {
    record_run(batch_, first, last);
    Future<void> done = run_handler(share);
    if (!done.valid()) return done;
    return std::move(done).on_error(
        [self = shared_from_this(), share](const std::exception_ptr& thrown) {
          self->fail(share, thrown);  // such as a result for all that cannot be moved
        });
  } catch (...) {
    error = std::current_exception();
  }
  if (is_divisible(share)) return run_bisected(first, last);
  fail(share, error);
  return {};
}

Future<void> BatchRun::run_bisected(std::size_t first, std::size_t last) noexcept {
  report_rows(batch_, first, last);  // of the run that failed
  const std::size_t middle = first + (last - first) / 2;
  Future<void> half = run(first, middle);
  if (!half.valid()) return run(middle, last);
  return std::move(half).then([self = shared_from_this(), middle, last] {
    return self->post(&BatchRun::run, middle, last);
  });
}

// Runs `step` on the batcher's executor, so that the thread that completes a handler's future does
// not run the handler again.
Future<void> BatchRun::post(Step step, std::size_t first, std::size_t last) {
  Promise<void> taken;
  Future<void> done = taken.get_future();
  const auto self = shared_from_this();
  try {
    batch_.executor->post([self, step, first, last, taken = std::move(taken)]() mutable {
      const OutsideOfCalls none;
      Future<void> step_done = (self.get()->*step)(first, last);
      if (!step_done.valid()) return taken.set_value();
      (void)std::move(step_done).then([taken = std::move(taken)]() mutable { taken.set_value(); });
    });
  } catch (...) {  // NOLINT: the promise went with the task, as when a task is dropped
  }
  return std::move(done).on_error([self, first, last](const std::exception_ptr&) {
    self->fail(
        first, last,
        std::make_exception_ptr(ShutDown("the executor of the batcher's handler has stopped")));
  });
}

Future<void> BatchRun::handler_failed(const Share& share, const std::exception_ptr& error) {
  if (is_divisible(share)) return post(&BatchRun::run_bisected, share.first, share.last);
  fail(share, error);
  return make_ready_future();
}

BatchInfo BatchRun::describe(const Share& share) const {
  BatchInfo info = describe_batch(batch_, share.first, share.last, share.padding);
  if (!keyed_) info.key.clear();
  return info;
}

void BatchRun::count_run(const Share& share) {
  ++outcome_.handler_runs;
  outcome_.padding += share.padding;
}

void BatchRun::check_count(std::size_t results, const Share& share) {
  if (results == share.rows + share.padding) return;
  throw InvalidArgument(
      "the batch handler returned " + std::to_string(results) + " results for " +
          std::to_string(share.rows) + " rows" +
          (share.padding > 0 ? " and " + std::to_string(share.padding) + " of padding" : ""),
      true);
}

void BatchRun::answer(const Share& share, const CompleteCall& complete) {
  complete_calls(batch_, share.first, share.last, outcome_, complete);
}

void BatchRun::fail(std::size_t first, std::size_t last, const std::exception_ptr& error) {
  fail_calls(batch_, first, last, error, outcome_);
}

}  // namespace batchrpc::detail
