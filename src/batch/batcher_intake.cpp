#include "batchrpc/batch/batcher_intake.hpp"

#include <exception>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/exposed.hpp"

namespace batchrpc::detail {
namespace {

// Returns a task that cancels the row with that ticket, if its batcher still lives.
auto cancelling(std::weak_ptr<BatchCore> core, std::uint64_t ticket) {
  return [core = std::move(core), ticket] {
    if (const auto alive = core.lock()) alive->cancel(ticket);
  };
}

}  // namespace

RowHook::~RowHook() { detach(); }

bool RowHook::follow(Ref<CallState> call, const std::shared_ptr<BatchCore>& core,
                     std::uint64_t ticket) {
  core_ = core;
  ticket_ = ticket;
  return attach(std::move(call));
}

Task RowHook::task() noexcept { return cancelling(core_, ticket_); }

CancellableCall::CancellableCall() = default;
CancellableCall::~CancellableCall() = default;
BatcherIntake::BatcherIntake() = default;
BatcherIntake::~BatcherIntake() = default;

void BatcherIntake::add_own(std::unique_ptr<CancellableCall> call,
                            const BatchCallOptions& options) const {
  if (options.timeout != Duration::zero()) call->timeout = options.timeout;
  const CallContext* const context = CallContext::current();
  const auto outer = context != nullptr ? ContextAccess::call(*context) : nullptr;
  std::shared_ptr<BatchCore> to_cancel;  // callbacks within enter() may drop the last handle
  if (options.stop.stop_possible() || outer) {
    to_cancel = core;
    call->ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
  }
  bool taken_back = outer && !call->on_cancel.follow(outer, core, call->ticket);
  if (options.stop.stop_possible()) {
    call->on_stop.emplace(options.stop, cancelling(core, call->ticket));
  }
  const std::uint64_t ticket = call->ticket;
  taken_back = taken_back || options.stop.stop_requested();
  enter(std::move(call), taken_back);
  taken_back = options.stop.stop_requested() || (outer && outer->cancelled());
  if (to_cancel && taken_back) to_cancel->cancel(ticket);
}

void BatcherIntake::add_peers(std::unique_ptr<CancellableCall> call,
                              const CallContext& context) const {
  call->caller = context.shared_caller();
  call->deadline = context.deadline();
  call->is_peers = true;
  call->may_run_batch = true;
  const std::uint64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
  call->ticket = ticket;
  const auto to_cancel = core;
  const bool taken_back = !call->on_cancel.follow(ContextAccess::call(context), core, ticket);
  const ContextScope scope(context);
  enter(std::move(call), taken_back);
  if (context.cancelled()) to_cancel->cancel(ticket);
}

void BatcherIntake::enter(std::unique_ptr<BatchCall> call, bool taken_back) const {
  std::exception_ptr refused;
  auto count = &BatchStatistics::invalid;
  try {
    apply_rules(*call);
    if (taken_back) {
      count = &BatchStatistics::cancelled;
      throw Cancelled("the row was cancelled before it reached the batcher", false);
    }
  } catch (...) {
    refused = std::current_exception();
    core->count_refused(call->rows, count);
  }
  if (!refused) refused = core->add(call);
  if (call) call->fail(refused, false);
}

}  // namespace batchrpc::detail
