#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc::detail {

/// Tasks ordered by time; tasks of the same time keep their order of insertion. Adding and removing
/// take O(log n). A removed task leaves nothing behind, so memory is proportional to the number of
/// waiting tasks. Not thread-safe.
class TimerHeap {
 public:
  TimerId push(TimePoint when, Task task);

  /// Removes and returns the task, if it was still waiting.
  std::optional<Task> remove(TimerId timer);

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }

  /// Returns the first task's time; the heap must not be empty.
  [[nodiscard]] TimePoint next() const noexcept { return heap_.front().when; }
  /// Returns the first task's insertion number; the heap must not be empty.
  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return heap_.front().sequence; }
  /// Returns the first task's name; the heap must not be empty.
  [[nodiscard]] TimerId next_timer() const noexcept {
    return (heap_.front().sequence << kSlotBits) | heap_.front().slot;
  }
  /// Returns the insertion number of the next task.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }

  /// Removes and returns the first task; the heap must not be empty.
  Task pop();

 private:
  static constexpr unsigned kSlotBits = 24;  // of a TimerId; the rest is the sequence number
  static constexpr std::uint32_t kSlots = 256;

  struct Slot {
    Task task;
    std::uint64_t sequence = 0;  // 0: free
    std::uint32_t place = 0;     // in heap_; the next free slot of its block while free
  };
  struct Block {
    std::array<Slot, kSlots> slots;
    std::uint32_t free = 0;  // first free slot; kSlots when full
    std::uint32_t used = 0;
  };
  struct Entry {
    TimePoint when;
    std::uint64_t sequence;
    std::uint32_t slot;
  };
  static bool before(const Entry& a, const Entry& b) noexcept {
    return a.when != b.when ? a.when < b.when : a.sequence < b.sequence;
  }

  Slot& slot(std::uint32_t index) noexcept {
    return blocks_[index / kSlots]->slots[index % kSlots];
  }
  std::uint32_t take_slot();
  Task free_slot(std::uint32_t index);
  Task erase(std::size_t place);
  void put(std::size_t place, const Entry& entry) noexcept;
  void sift_up(std::size_t place, Entry entry) noexcept;
  void sift_down(std::size_t place, Entry entry) noexcept;

  std::vector<Entry> heap_;
  std::vector<std::unique_ptr<Block>> blocks_;  // null where every slot was free
  std::vector<std::uint32_t> open_;             // blocks with free slots (null ones included)
  std::uint64_t sequence_ = 1;
};

}  // namespace batchrpc::detail
