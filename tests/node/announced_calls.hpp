#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "batchrpc/batchrpc.hpp"

namespace batchrpc::test {

/// The calls that a Swallower has seen announced, by their first arguments. It has memory for each
/// call, if it is asked for that.
struct AnnouncedCalls {
  struct Call {
    std::string caller{};
    std::optional<Duration> time_left{};
    std::shared_ptr<detail::TransferGate> gate{};
    std::weak_ptr<void> kept{};
    std::weak_ptr<detail::PayloadTarget> target{};
    Bytes memory{};  ///< once it was asked for
    int asked = 0;
    bool ran = false;
    bool kept_until_it_ran = false;
    Bytes argument{};
  };

  bool holds = false;
  bool has_memory = true;
  std::function<void(int)> on_announce = [](int /*call*/) {};
  std::map<int, Call> calls{};

  /// Whether nothing of the call is kept.
  [[nodiscard]] bool let_go(int call) {
    return calls.at(call).kept.expired() && calls.at(call).target.expired();
  }
};

using Swallow = std::size_t(int, Bytes);

/// The function: answers how large its second argument is.
struct Swallower {
  std::shared_ptr<AnnouncedCalls> announced = std::make_shared<AnnouncedCalls>();

  std::size_t operator()(int number, Bytes bytes) const {
    AnnouncedCalls::Call& call = announced->calls[number];
    call.ran = true;
    call.kept_until_it_ran = !call.kept.expired();
    const std::size_t size = bytes.size();
    call.argument = std::move(bytes);
    return size;
  }

  [[nodiscard]] detail::ReceivePlan announce(
      Decoder& arguments, const std::shared_ptr<detail::TransferGate>& gate) const {
    const auto [number] = decode_struct<int>(arguments, wire::kBodyPointer - 1);
    AnnouncedCalls::Call& call = announced->calls[number];
    call.gate = gate;
    if (const CallContext* context = CallContext::current(); context != nullptr) {
      call.caller = context->caller().name;
      call.time_left = context->time_left();
    }
    announced->on_announce(number);
    detail::ReceivePlan receive_plan{.kept = std::make_shared<int>(number),
                                     .held = announced->holds};
    call.kept = receive_plan.kept;
    if (announced->has_memory) {
      receive_plan.target = std::make_shared<detail::PayloadTarget>(
          [&call](std::size_t /*index*/, std::size_t size) -> std::span<std::byte> {
            ++call.asked;
            call.memory = Bytes::allocate(size);
            return {call.memory.mutable_data(), size};
          });
      call.target = receive_plan.target;
    }
    return receive_plan;
  }
};

/// Bytes that differ from place to place, and from seed to seed.
inline Bytes scribbled(std::size_t size, std::uint32_t seed) {
  Bytes bytes = Bytes::allocate(size);
  std::uint32_t value = seed * 2654435761U + 1;
  for (std::size_t i = 0; i < size; ++i) {
    value = value * 1664525U + 1013904223U;
    bytes.mutable_data()[i] = static_cast<std::byte>(value >> 24);
  }
  return bytes;
}

}  // namespace batchrpc::test
