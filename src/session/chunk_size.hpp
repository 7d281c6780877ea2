#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace batchrpc {

/// The size of the chunks in which payloads are sent: about as much as the stream takes without
/// blocking. On a slow stream, a call behind a chunk must not wait for long. On a fast one, the
/// system call of each chunk must cost little. Not thread-safe.
class ChunkSize {
 public:
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The stream has taken `taken` bytes; `blocked`: it takes no more now.
  void fit(std::size_t taken, bool blocked) noexcept {
    at_once_ += taken;
    std::size_t steps = bytes_ / kStep;
    if (blocked) {
      steps = std::max(steps / 2, std::exchange(at_once_, 0) / kStep);
    } else {  // all that was sent at once may be one chunk the next time
      steps = std::max(steps, (at_once_ + kStep - 1) / kStep);
    }
    bytes_ = std::clamp(steps * kStep, kStep, kMost);
  }
  /// Everything was sent.
  void all_sent() noexcept { at_once_ = 0; }

 private:
  static constexpr std::size_t kStep = 16 * 1024;  // also the smallest size
  static constexpr std::size_t kFirst = 256 * 1024;
  static constexpr std::size_t kMost = 1024 * 1024;

  std::size_t bytes_ = kFirst;
  std::size_t at_once_ = 0;  // bytes written since the stream blocked, or had sent everything
};

}  // namespace batchrpc
