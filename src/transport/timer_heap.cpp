#include "transport/timer_heap.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace batchrpc::detail {

TimerId TimerHeap::push(TimePoint when, Task task) {
  if (heap_.size() == heap_.capacity()) heap_.reserve(std::max<std::size_t>(16, 2 * heap_.size()));
  const std::uint32_t index = take_slot();
  Slot& taken = slot(index);
  taken.task = std::move(task);
  taken.sequence = sequence_++;
  heap_.push_back({});
  sift_up(heap_.size() - 1, {when, taken.sequence, index});
  return (taken.sequence << kSlotBits) | index;
}

std::optional<Task> TimerHeap::remove(TimerId timer) {
  const auto index = static_cast<std::uint32_t>(timer & ((1U << kSlotBits) - 1));
  if (index / kSlots >= blocks_.size() || !blocks_[index / kSlots]) return {};
  const Slot& found = slot(index);
  if (found.sequence == 0 || ((found.sequence << kSlotBits) | index) != timer) return {};
  return erase(found.place);
}

Task TimerHeap::pop() { return erase(0); }

Task TimerHeap::erase(std::size_t place) {
  Task task = free_slot(heap_[place].slot);
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place < heap_.size()) {
    if (place > 0 && before(last, heap_[(place - 1) / 2])) {
      sift_up(place, last);
    } else {
      sift_down(place, last);
    }
  }
  if (heap_.capacity() > 64 && heap_.size() < heap_.capacity() / 4) {
    std::vector<Entry> smaller;
    smaller.reserve(heap_.capacity() / 2);
    smaller.assign(heap_.begin(), heap_.end());
    heap_.swap(smaller);
  }
  return task;
}

std::uint32_t TimerHeap::take_slot() {
  if (open_.empty()) {
    if (blocks_.size() >= (1U << kSlotBits) / kSlots) throw std::length_error("too many timers");
    open_.push_back(static_cast<std::uint32_t>(blocks_.size()));
    blocks_.emplace_back();
  }
  const std::uint32_t number = open_.back();
  auto& block = blocks_[number];
  if (!block) {
    block = std::make_unique<Block>();
    for (std::uint32_t i = 0; i < kSlots; ++i)
      block->slots[i].place = i + 1;
  }
  const std::uint32_t in_block = block->free;
  block->free = block->slots[in_block].place;
  if (++block->used == kSlots) open_.pop_back();
  return number * kSlots + in_block;
}

Task TimerHeap::free_slot(std::uint32_t index) {
  auto& block = blocks_[index / kSlots];
  Slot& freed = block->slots[index % kSlots];
  Task task = std::move(freed.task);
  freed.sequence = 0;
  freed.place = block->free;
  block->free = index % kSlots;
  // Of the blocks without timers only the one that is filled next is kept, so that a single
  // repeated timer does not allocate each time.
  if (block->used-- == kSlots) {
    if (!open_.empty() && blocks_[open_.back()] && blocks_[open_.back()]->used == 0) {
      blocks_[open_.back()].reset();
    }
    open_.push_back(index / kSlots);
  }
  if (block->used == 0 && open_.back() != index / kSlots) block.reset();
  return task;
}

void TimerHeap::put(std::size_t place, const Entry& entry) noexcept {
  heap_[place] = entry;
  slot(entry.slot).place = static_cast<std::uint32_t>(place);
}

void TimerHeap::sift_up(std::size_t place, Entry entry) noexcept {
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!before(entry, heap_[parent])) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, entry);
}

void TimerHeap::sift_down(std::size_t place, Entry entry) noexcept {
  const std::size_t size = heap_.size();
  for (std::size_t child = 2 * place + 1; child < size; child = 2 * place + 1) {
    if (child + 1 < size && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], entry)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, entry);
}

}  // namespace batchrpc::detail
