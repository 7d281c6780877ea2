#pragma once

#include <cstdint>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// What a message keeps alive: a call until it has ended, a result until it was sent, its payloads
/// included. Destroyed then, on any thread, perhaps under a lock of the library's.
class BATCHRPC_EXPORT DeliveryHook {
 public:
  DeliveryHook() = default;
  virtual ~DeliveryHook();
  DeliveryHook(const DeliveryHook&) = delete;
  DeliveryHook& operator=(const DeliveryHook&) = delete;

  /// The message goes to the node of that name and incarnation (0: not known yet). At most once;
  /// under a lock of the library's.
  virtual void sent_to(std::string_view peer, std::uint64_t incarnation,
                       bool as_reply) noexcept = 0;
  /// It was taken back, or refused: nobody has it.
  virtual void taken_back() noexcept = 0;
};

}  // namespace batchrpc
