#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/call/remote_call.hpp"

namespace batchrpc::detail {

/// Memory for a row's payload: a slot in the memory of a whole batch.
struct RowMemory {
  std::span<std::byte> room{};
  std::shared_ptr<const void> owner{};  ///< keeps the memory alive
};

/// An announced payload.
struct AnnouncedPayload {
  std::uint32_t index = 0;  ///< its index in the call
  std::size_t bytes = 0;
};

/// Where the payloads of one call are received. Memory is taken when a payload begins to arrive, so
/// calls that wait at their senders use none.
class RowMemories {
 public:
  struct Part {
    AnnouncedPayload payload;
    std::function<RowMemory()> take;
    RowMemory memory{};
  };

  /// Returns the target into which the node receives the payloads.
  [[nodiscard]] BATCHRPC_EXPORT static std::shared_ptr<PayloadTarget> target(
      std::vector<Part> parts);

  /// Returns the memory in which `bytes` were received; null if they were received elsewhere.
  [[nodiscard]] BATCHRPC_EXPORT static const RowMemory* of(const Bytes& bytes);

  /// The deleter of a target; of() finds the target by it.
  void operator()(const PayloadTarget* target) const noexcept { delete target; }

 private:
  explicit RowMemories(std::shared_ptr<std::vector<Part>> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<std::vector<Part>> parts_;
};

}  // namespace batchrpc::detail
