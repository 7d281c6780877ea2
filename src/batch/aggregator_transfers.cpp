#include <algorithm>

#include "batch/aggregator.hpp"

// Large calls wait at their senders until there is room for them: a queue that is full of
// announcements takes no memory.
namespace batchrpc::detail {
namespace {

// One is accumulated while the next comes in.
constexpr std::size_t kOfReducer = 2;

}  // namespace

/// A call whose payloads are coming in, or wait at their sender. Ends when the call is here, or
/// never will be.
class Aggregator::Transfer {
 public:
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
  bool held = false;  // under the batcher's lock

 private:
  const std::weak_ptr<Aggregator> core_;
};

std::shared_ptr<void> Aggregator::expect_transfer(std::size_t bytes,
                                                  const std::shared_ptr<TransferGate>& gate,
                                                  bool& held) {
  auto transfer = std::make_shared<Transfer>(weak_from_this(), bytes, gate);
  const Lock lock(mutex_);
  held = !held_transfers_.empty() || !may_come(*transfer);
  transfer->held = held;
  if (held) {
    held_transfers_.push_back(transfer.get());
  } else {
    ++transfers_;
    transfer_bytes_ += bytes;
  }
  return transfer;
}

bool Aggregator::may_come(const Transfer& transfer) {
  if (!closed_.empty()) return true;  // to be refused
  std::size_t waiting = 0;
  if (work_.accumulate && !options_->order_by_peer) {
    queue_.for_each([&](const BatchCall& call) { waiting += call.accumulated ? 0 : 1; });
    if (transfers_ + waiting >= kOfReducer) return false;
  }
  const std::size_t before = queue_.bytes() + held_.bytes() + transfer_bytes_;
  return before == 0 || before + transfer.bytes <= options_->max_queue_bytes;
}

// By who holds the lock.
void Aggregator::let_transfers_come() {
  while (!held_transfers_.empty() && may_come(*held_transfers_.front())) {
    Transfer& transfer = *held_transfers_.front();
    held_transfers_.pop_front();
    transfer.held = false;
    ++transfers_;
    transfer_bytes_ += transfer.bytes;
    transfer.gate->open();
  }
}

void Aggregator::transfer_ended(const Transfer& transfer) {
  const Lock lock(mutex_);
  if (transfer.held) {
    std::erase(held_transfers_, &transfer);
    return;
  }
  --transfers_;
  transfer_bytes_ -= transfer.bytes;
  let_transfers_come();
}

}  // namespace batchrpc::detail
