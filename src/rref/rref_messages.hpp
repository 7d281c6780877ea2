#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "batchrpc/rref/reference.hpp"

/// What nodes tell each other about references: notifications of the library's own, each of one of
/// these or a list. The rules are those of docs/rref-protocol.md.
namespace batchrpc::detail {

/// A user tells an owner what it holds (R1), in order.
struct HoldUpdate {
  enum Kind : std::uint8_t {
    release = 0,
    hold = 1,
    /// Of all that it holds (R6). `object` is the next that the holder will have made: those from
    /// there on may not be in the list.
    list_begins = 2,
    list_ends = 3,
  };
  ObjectId object{};
  std::uint8_t kind = release;
  Fork fork{};           ///< of the handle that has come; zero: none
  std::string parent{};  ///< who waits to hear of that
  /// Rises with each that the holder tells, whomever: what comes late or again counts no more.
  std::uint64_t number = 0;
};

/// A parent asks what became of a handle that it has sent (R3).
struct ForkQuestion {
  ObjectId object{};
  Fork fork{};
};

/// There is no such object, and why: an owner tells who holds it, and a creator its owner.
struct NoObject {
  ObjectId object{};
  std::uint16_t code = 0;
  std::string why{};    ///< what() of the error; of a remote_error thrown_what()
  std::string type{};   ///< of a remote_error: of what was thrown,
  std::string maker{};  ///< by what
};
[[nodiscard]] NoObject no_object(const ObjectId& object, const std::exception_ptr& why);
/// What calls of an object of `owner` fail with.
[[nodiscard]] std::exception_ptr error_of(const NoObject& none, std::string_view owner);

inline constexpr std::string_view kHold = "batchrpc.rref.hold";
inline constexpr std::string_view kArrived = "batchrpc.rref.arrived";
inline constexpr std::string_view kAsk = "batchrpc.rref.ask";
inline constexpr std::string_view kNone = "batchrpc.rref.none";
inline constexpr std::string_view kAbandon = "batchrpc.rref.abandon";

}  // namespace batchrpc::detail
