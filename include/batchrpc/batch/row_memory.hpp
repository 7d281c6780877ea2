#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/node/remote_call.hpp"

namespace batchrpc::detail {

/// Where a payload of a row is received: a slot of memory that holds a whole batch's.
struct RowMemory {
  std::uint32_t payload = 0;      ///< its index in the call
  std::span<std::byte> room{};    ///< as large as the payload
  std::shared_ptr<void> owner{};  ///< keeps the memory
};

/// The places of all payloads of one call, which own their memory.
class RowMemories {
 public:
  explicit RowMemories(std::vector<RowMemory> memories) : memories_(std::move(memories)) {}

  /// For the node, by which it receives the payloads there.
  [[nodiscard]] BATCHRPC_EXPORT static std::shared_ptr<PayloadTarget> target(
      std::vector<RowMemory> memories);

  /// Where `bytes` were received so; null, where they were not.
  [[nodiscard]] BATCHRPC_EXPORT static const RowMemory* of(const Bytes& bytes);

  /// As the deleter of a target, by which it is found again.
  void operator()(const PayloadTarget* target) const noexcept { delete target; }

 private:
  std::vector<RowMemory> memories_;
};

}  // namespace batchrpc::detail
