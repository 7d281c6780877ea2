#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "batchrpc/call/receive_plan.hpp"

namespace batchrpc {

class IncomingCalls;

/// Lets the payloads of one incoming call come, or holds them back. Any thread may open it. The
/// thread that reads holds it.
class FlowControl final : public detail::TransferGate {
 public:
  FlowControl(std::weak_ptr<IncomingCalls> calls, std::uint64_t call, std::uint64_t bytes)
      : calls_(std::move(calls)), call_(call), bytes_(bytes) {}

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] std::uint64_t received() const noexcept override {
    return received_.load(std::memory_order_relaxed);
  }
  /// Sets the bytes of the payloads that have come. The thread that reads calls it.
  void set_received(std::uint64_t bytes) noexcept {
    received_.store(bytes, std::memory_order_relaxed);
  }

  void open() noexcept override;

  /// Asks the sender to wait, unless the gate was opened before.
  void hold();
  [[nodiscard]] bool is_shut() const noexcept {
    return state_.load(std::memory_order_acquire) == State::shut;
  }

 private:
  enum class State : std::uint8_t { unused, shut, open };

  const std::weak_ptr<IncomingCalls> calls_;
  const std::uint64_t call_;
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> received_{0};
  std::atomic<State> state_{State::unused};
};

}  // namespace batchrpc
