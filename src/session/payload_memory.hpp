#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Memory for the large payloads that a node receives, which is used again: the system gives fresh
/// pages more slowly than a socket gives their bytes (docs/decisions/0021). What the program has
/// let go of is kept for what comes next, but never so much that all together would be more than
/// was in use at one time since the tick before the last. Thread-safe.
class PayloadMemory : public std::enable_shared_from_this<PayloadMemory> {
 public:
  PayloadMemory() = default;
  ~PayloadMemory();
  PayloadMemory(const PayloadMemory&) = delete;
  PayloadMemory& operator=(const PayloadMemory&) = delete;

  /// Smaller ones are allocated as any other memory: the allocator keeps these.
  static constexpr std::size_t kSmallest = std::size_t{1} << 20;

  /// As Bytes::allocate; may be let go of on any thread, and after this is gone.
  [[nodiscard]] BATCHRPC_EXPORT Bytes allocate(std::size_t size);

  /// To be called now and then: what has not been needed since the tick before goes back to the
  /// system.
  void tick();
  /// From now on nothing is kept.
  void close();

  /// What is kept, and what the program has, in bytes.
  /// @{
  [[nodiscard]] std::size_t kept_bytes() const;
  [[nodiscard]] std::size_t used_bytes() const;
  /// @}

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::size_t capacity = 0;
  };

  Block take_kept(std::size_t size);
  void take_back(Block block) noexcept;
  void free_surplus() noexcept;
  static Block make(std::size_t size);
  static void free(Block block) noexcept;

  mutable std::mutex mutex_;
  std::vector<Block> kept_;  // the one that was let go of last at the end
  std::size_t kept_bytes_ = 0;
  std::size_t in_use_ = 0;
  std::size_t most_in_use_ = 0;         // since the last tick
  std::size_t most_in_use_before_ = 0;  // since the one before, until the last
  bool closed_ = false;
};

}  // namespace batchrpc
