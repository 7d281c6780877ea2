#include <utility>

#include "batch/aggregator.hpp"

// Large calls wait at their senders until there is room for them: a queue that is full of
// announcements takes no memory but for what comes unasked, at most 1 MiB of each.
namespace batchrpc::detail {
namespace {

// One is accumulated while the next comes in.
constexpr std::size_t kOfReducer = 2;

}  // namespace

/// A call whose payloads are coming in, or wait at their sender. Ends when the call is here, or
/// never will be.
class Aggregator::Transfer {
 public:
  /// By which it is known among what functions keep.
  struct Deleter {
    void operator()(const Transfer* transfer) const noexcept { delete transfer; }
  };

  Transfer(std::weak_ptr<Aggregator> core, std::size_t its_bytes,
           std::shared_ptr<TransferGate> its_gate)
      : bytes(its_bytes), gate(std::move(its_gate)), core_(std::move(core)) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (const auto core = core_.lock()) core->transfer_ended(*this);
  }

  const std::size_t bytes;
  const std::shared_ptr<TransferGate> gate;
  // Under the batcher's lock:
  bool held = false;
  bool over = false;  // is counted no more

  [[nodiscard]] bool is_of(const Aggregator& core) const { return core_.lock().get() == &core; }

 private:
  const std::weak_ptr<Aggregator> core_;
};

std::shared_ptr<void> Aggregator::expect_transfer(std::size_t bytes,
                                                  const std::shared_ptr<TransferGate>& gate,
                                                  bool& held) {
  std::shared_ptr<Transfer> transfer(new Transfer(weak_from_this(), bytes, gate),
                                     Transfer::Deleter());
  const CallContext* const context = CallContext::current();
  const auto caller = context != nullptr ? context->shared_caller() : nullptr;
  Lock lock(mutex_);
  held = !held_transfers_.empty() || !may_come(*transfer);
  transfer->held = held;
  if (held) {
    held_transfers_.add(caller.get(), {transfer.get(), gate});
    if (host_) start_if_due(lock, host_->loop()->now());  // what is full waits for no more
  } else {
    ++transfers_;
    transfer_bytes_ += bytes;
  }
  return transfer;
}

// Whether a call was let in when it was announced. It comes now, and counts among those that wait.
bool Aggregator::was_let_in(const std::shared_ptr<void>& announced) {
  if (std::get_deleter<Transfer::Deleter>(announced) == nullptr) return false;
  auto& transfer = *static_cast<Transfer*>(announced.get());
  if (transfer.over || !transfer.is_of(*this)) return false;
  forget(transfer);
  return !transfer.held;
}

bool Aggregator::may_come(const Transfer& transfer) {
  const bool one_by_one = work_.accumulate && !options_->order_by_peer && closed_.empty();
  if (one_by_one && transfers_ + queue_.calls_to_accumulate() >= kOfReducer) return false;
  const std::size_t before = queue_.bytes() + held_.bytes() + transfer_bytes_;
  return before == 0 || before + transfer.bytes <= options_->max_queue_bytes;
}

// By who holds the lock.
void Aggregator::let_transfers_come() {
  while (!held_transfers_.empty() && may_come(*held_transfers_.next().transfer)) {
    Transfer& transfer = *held_transfers_.take_next().transfer;
    transfer.held = false;
    ++transfers_;
    transfer_bytes_ += transfer.bytes;
    transfer.gate->open();
  }
}

// At the batcher's end, when transfers may be gone that could not say so any more.
void Aggregator::let_all_transfers_come() noexcept {
  const Lock lock(mutex_);
  held_transfers_.for_each([](const HeldTransfer& held) { held.gate->open(); });
  held_transfers_ = {};
}

// By who holds the lock.
void Aggregator::forget(Transfer& transfer) {
  transfer.over = true;
  if (transfer.held) {
    held_transfers_.remove_if(
        [&transfer](const HeldTransfer& held) { return held.transfer == &transfer; });
  } else {
    --transfers_;
    transfer_bytes_ -= transfer.bytes;
  }
}

void Aggregator::transfer_ended(Transfer& transfer) {
  Lock lock(mutex_);
  if (transfer.over) return;
  forget(transfer);
  if (host_) start_if_due(lock, host_->loop()->now());
}

}  // namespace batchrpc::detail
