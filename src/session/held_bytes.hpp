#pragma once

#include <atomic>
#include <cstdint>

namespace batchrpc {

/// Counts the bytes of calls and replies that an output queue holds: queued, being written, or kept
/// until they are acknowledged. Payloads that the peer has paused are counted separately. The queue
/// changes the counts under its lock. Any thread may read them.
class HeldBytes {
 public:
  struct Part {
    std::uint64_t calls = 0;
    std::uint64_t replies = 0;  ///< also of credits for the peer's calls
  };

  void add(const Part& part) noexcept {
    change(calls_, part.calls);
    change(replies_, part.replies);
  }
  void remove(const Part& part) noexcept {
    change(calls_, 0 - part.calls);
    change(replies_, 0 - part.replies);
  }
  /// Counts bytes of calls as paused.
  void pause(std::uint64_t bytes) noexcept {
    change(calls_, 0 - bytes);
    change(paused_, bytes);
  }
  void resume(std::uint64_t bytes) noexcept {
    change(paused_, 0 - bytes);
    change(calls_, bytes);
  }
  void clear() noexcept {
    for (auto* const count : {&calls_, &paused_, &replies_})
      count->store(0, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t calls() const noexcept { return read(calls_); }
  [[nodiscard]] std::uint64_t paused() const noexcept { return read(paused_); }
  [[nodiscard]] std::uint64_t replies() const noexcept { return read(replies_); }

 private:
  using Count = std::atomic<std::uint64_t>;
  static std::uint64_t read(const Count& count) noexcept {
    return count.load(std::memory_order_relaxed);
  }
  // Only the thread that holds the queue's lock writes, so this need not be atomic.
  static void change(Count& count, std::uint64_t by) noexcept {
    count.store(read(count) + by, std::memory_order_relaxed);
  }

  Count calls_{0};
  Count paused_{0};
  Count replies_{0};
};

}  // namespace batchrpc
