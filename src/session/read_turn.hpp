#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// How much of one connection a loop handles before its other connections get their turns: 64
/// messages, more of them (512 at most) until 250 µs have passed, or fewer if they take 1 ms.
/// Replies are written when the turn ends. So a window of some hundred short calls is answered by
/// one write, which doubles what one connection can do.
class ReadTurn {
 public:
  static constexpr unsigned kMessages = 64;
  static constexpr unsigned kMost = 512;
  static constexpr Duration kShortest = std::chrono::microseconds(250);
  static constexpr Duration kLongest = std::chrono::milliseconds(1);

  /// Unlimited.
  ReadTurn() noexcept = default;
  /// `now`: by the ticks of the loop. `careful`: the messages of the connection take long.
  ReadTurn(const Loop& loop, std::uint64_t now, bool careful) noexcept
      : loop_(&loop), began_(now), each_(careful ? 1 : kEach), until_look_(each_) {}

  /// Counts a message. Returns whether the turn is over. The clock is read after a large message
  /// and at every eighth, or after each if the connection's last turn had long ones.
  bool count_message(std::size_t bytes) noexcept {
    if (--until_look_ > 0 && bytes < kLarge) return false;
    messages_ += each_ - until_look_;
    until_look_ = each_;
    look();
    return is_over_;
  }
  /// Looks at the clock.
  void look() noexcept {
    if (loop_ == nullptr) return;
    const Duration took = loop_->time_of(loop_->ticks() - began_);
    is_over_ = messages_ >= kMost || took >= (messages_ >= kMessages ? kShortest : kLongest);
  }
  [[nodiscard]] bool is_limited() const noexcept { return loop_ != nullptr; }
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }
  /// Whether it is over because of few messages that took long.
  [[nodiscard]] bool had_long_messages() const noexcept {
    return is_over_ && messages_ < kMessages;
  }

 private:
  static constexpr unsigned kEach = 8;
  static constexpr std::size_t kLarge = 1024;

  const Loop* loop_ = nullptr;
  std::uint64_t began_ = 0;
  unsigned messages_ = 0;  // up to the last look at their number
  unsigned each_ = kEach;
  unsigned until_look_ = kEach;
  bool is_over_ = false;
};

}  // namespace batchrpc
