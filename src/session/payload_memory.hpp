#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Reuses memory for the large payloads that a node receives. The system provides fresh pages more
/// slowly than a socket delivers their bytes (docs/decisions/0021). Blocks that the program has
/// freed are kept for the next payloads. Kept and used memory together never exceed the most that
/// was in use at one time since the tick before the last. Thread-safe.
class PayloadMemory : public std::enable_shared_from_this<PayloadMemory> {
 public:
  PayloadMemory() = default;
  ~PayloadMemory();
  PayloadMemory(const PayloadMemory&) = delete;
  PayloadMemory& operator=(const PayloadMemory&) = delete;

  /// The smallest payload that is handled here. The allocator reuses the memory of smaller ones.
  static constexpr std::size_t kSmallest = std::size_t{1} << 20;

  /// Like Bytes::allocate. The bytes may be freed on any thread, even after this object is gone.
  [[nodiscard]] BATCHRPC_EXPORT Bytes allocate(std::size_t size);

  /// Returns memory to the system that was not needed since the previous tick. Call it now and
  /// then.
  void tick();
  /// From now on no memory is kept.
  void close();

  /// The bytes that are kept, and those that the program uses.
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
  std::vector<Block> kept_;  // the block that was freed last is at the end
  std::size_t kept_bytes_ = 0;
  std::size_t in_use_ = 0;
  std::size_t most_in_use_ = 0;         // since the last tick
  std::size_t most_in_use_before_ = 0;  // between the last two ticks
  bool closed_ = false;
};

}  // namespace batchrpc
