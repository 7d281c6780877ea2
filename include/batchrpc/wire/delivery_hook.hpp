#pragma once

#include <cstdint>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// An object that a message keeps alive: a call until it has ended, a result until it has been
/// sent, including its payloads. It is then destroyed, on any thread, perhaps under a lock of the
/// library.
class BATCHRPC_EXPORT DeliveryHook {
 public:
  DeliveryHook() = default;
  virtual ~DeliveryHook();
  DeliveryHook(const DeliveryHook&) = delete;
  DeliveryHook& operator=(const DeliveryHook&) = delete;

  /// The message is being sent to the node with that name and incarnation (0: not known yet).
  /// Called at most once, under a lock of the library.
  virtual void sent_to(std::string_view peer, std::uint64_t incarnation,
                       bool as_reply) noexcept = 0;
  /// The message was withdrawn or refused; no node has it.
  virtual void taken_back() noexcept = 0;
};

}  // namespace batchrpc
