#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "batchrpc/rref/reference.hpp"

/// The messages between nodes about references. Each is one of the library's own notifications with
/// one of these structs or a list of them. docs/rref-protocol.md has the rules.
namespace batchrpc::detail {

/// A holder reports to an owner what it holds (R1), in order.
struct HoldUpdate {
  enum Kind : std::uint8_t {
    release = 0,
    hold = 1,
    /// Begins a list of all that it holds (R6). `object` is the next object that the holder will
    /// create: objects from there on may be missing from the list.
    list_begins = 2,
    list_ends = 3,
  };
  ObjectId object{};
  std::uint8_t kind = release;
  Fork fork{};           ///< of the handle that arrived; zero: none
  std::string parent{};  ///< the node that waits for the arrival
  /// Counts a holder's updates, to whichever node: late and repeated ones are ignored.
  std::uint64_t number = 0;
};

/// A parent asks whether a handle that it sent has arrived (R3).
struct ForkQuestion {
  ObjectId object{};
  Fork fork{};
};

/// Reports that an object does not exist, with the reason: from an owner to its holders, or from a
/// creator to its owner.
struct NoObject {
  ObjectId object{};
  std::uint16_t code = 0;
  std::string why{};    ///< the error's what(); for a remote_error, its thrown_what()
  std::string type{};   ///< for a remote_error: the type of the thrown exception,
  std::string maker{};  ///< and the function that threw it
};
[[nodiscard]] NoObject no_object(const ObjectId& object, const std::exception_ptr& why);
/// The error for calls of an object of `owner`.
[[nodiscard]] std::exception_ptr error_of(const NoObject& none, std::string_view owner);

inline constexpr std::string_view kHold = "batchrpc.rref.hold";
inline constexpr std::string_view kArrived = "batchrpc.rref.arrived";
inline constexpr std::string_view kAsk = "batchrpc.rref.ask";
inline constexpr std::string_view kNone = "batchrpc.rref.none";
inline constexpr std::string_view kAbandon = "batchrpc.rref.abandon";

}  // namespace batchrpc::detail
