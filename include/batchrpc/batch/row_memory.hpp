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

/// Memory for a row's payload: a slot of what holds a whole batch's.
struct RowMemory {
  std::span<std::byte> room{};
  std::shared_ptr<const void> owner{};  ///< keeps it
};

/// A payload that is announced.
struct AnnouncedPayload {
  std::uint32_t index = 0;  ///< in its call
  std::size_t bytes = 0;
};

/// Where the payloads of one call are received. Memory is taken when a payload begins to come, so
/// that calls which wait at their senders take none.
class RowMemories {
 public:
  struct Part {
    AnnouncedPayload payload;
    std::function<RowMemory()> take;
    RowMemory memory{};
  };

  /// For the node, which receives the payloads there.
  [[nodiscard]] BATCHRPC_EXPORT static std::shared_ptr<PayloadTarget> target(
      std::vector<Part> parts);

  /// Where `bytes` were received so; null, where they were not.
  [[nodiscard]] BATCHRPC_EXPORT static const RowMemory* of(const Bytes& bytes);

  /// As the deleter of a target, by which it is found again.
  void operator()(const PayloadTarget* target) const noexcept { delete target; }

 private:
  explicit RowMemories(std::shared_ptr<std::vector<Part>> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<std::vector<Part>> parts_;
};

}  // namespace batchrpc::detail
