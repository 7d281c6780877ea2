#include <utility>

#include "batch/aggregator.hpp"

namespace batchrpc::detail {

/// A call that is arriving; its connection keeps this object. It ends when the call is here or will
/// never be.
class Aggregator::Transfer {
 public:
  /// Identifies a Transfer among the pointers that functions keep.
  struct Deleter {
    void operator()(const Transfer* transfer) const noexcept { delete transfer; }
  };

  Transfer(std::weak_ptr<Aggregator> core, std::size_t bytes, std::shared_ptr<TransferGate> gate)
      : incoming{.bytes = bytes, .gate = std::move(gate)}, core_(std::move(core)) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (const auto core = core_.lock()) core->transfer_ended(*this);
  }

  [[nodiscard]] bool is_of(const Aggregator& core) const { return core_.lock().get() == &core; }

  IncomingTransfer incoming;  // guarded by the batcher's mutex

 private:
  const std::weak_ptr<Aggregator> core_;
};

std::shared_ptr<void> Aggregator::expect_transfer(std::size_t bytes,
                                                  const std::shared_ptr<TransferGate>& gate,
                                                  bool& held) {
  std::shared_ptr<Transfer> transfer(new Transfer(weak_from_this(), bytes, gate),
                                     Transfer::Deleter());
  const CallContext* const context = CallContext::current();
  if (context != nullptr) transfer->incoming.caller = context->shared_caller();
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    transfers_.begin(transfer->incoming, transfer_room());
    held = transfer->incoming.held;
    if (held && host_) start_if_due(host_.now(), todo);  // a full queue waits no longer
  }
  perform(std::move(todo));
  return transfer;
}

// Whether the call was admitted when it was announced, and has not stalled since. It has arrived
// now, and counts as waiting.
bool Aggregator::was_let_in(const std::shared_ptr<void>& announced) {
  if (std::get_deleter<Transfer::Deleter>(announced) == nullptr) return false;
  auto& transfer = *static_cast<Transfer*>(announced.get());
  if (transfer.incoming.over || !transfer.is_of(*this)) return false;
  transfers_.end(transfer.incoming);
  return !transfer.incoming.held && !transfer.incoming.stalled;
}

IncomingTransfers::Room Aggregator::transfer_room() const {
  return {.one_by_one = accumulation_.is_early() && closing_.is_open(),
          .to_accumulate = waiting_.calls_to_accumulate(),
          .waiting_bytes = waiting_.bytes(),
          .max_bytes = options_->max_queue_bytes,
          .now = host_ ? host_.now() : TimePoint(),
          .stalls_after = host_ ? host_.dead_after() : Duration::max()};
}

void Aggregator::let_transfers_come(Deferred& todo) {
  if (!transfers_.is_idle()) transfers_.let_come(transfer_room(), todo.gates);
}

// At the batcher's end: some transfers may be gone without having been able to report it.
void Aggregator::let_all_transfers_come() noexcept {
  IncomingTransfers::Gates gates;
  {
    const std::lock_guard lock(mutex_);
    gates = transfers_.release_held();
  }
  for (const auto& gate : gates)
    gate->open();
}

void Aggregator::transfer_ended(Transfer& transfer) {
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    if (transfer.incoming.over) return;
    transfers_.end(transfer.incoming);
    if (host_) start_if_due(host_.now(), todo);
  }
  perform(std::move(todo));
}

}  // namespace batchrpc::detail
