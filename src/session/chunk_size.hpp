#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace batchrpc {

/// How large the chunks of payloads are: about as large as what the stream takes without a wait. A
/// call behind a chunk must not wait for long on a slow stream, and on a fast one the system call
/// of a chunk must not show. Not thread-safe.
class ChunkSize {
 public:
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The stream has taken `taken` bytes; `blocked`: it takes no more now.
  void fit(std::size_t taken, bool blocked) noexcept {
    at_once_ += taken;
    std::size_t steps = bytes_ / kStep;
    if (blocked) {
      steps = std::max(steps / 2, std::exchange(at_once_, 0) / kStep);
    } else {  // what was sent at once may be one chunk the next time
      steps = std::max(steps, (at_once_ + kStep - 1) / kStep);
    }
    bytes_ = std::clamp(steps * kStep, kStep, kMost);
  }
  /// Everything was sent.
  void all_sent() noexcept { at_once_ = 0; }

 private:
  static constexpr std::size_t kStep = 16 * 1024;  // and the smallest
  static constexpr std::size_t kFirst = 256 * 1024;
  static constexpr std::size_t kMost = 1024 * 1024;

  std::size_t bytes_ = kFirst;
  std::size_t at_once_ = 0;  // written since the stream blocked, or since everything was sent
};

}  // namespace batchrpc
