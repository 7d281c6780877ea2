#pragma once

#include <cstddef>

/// What an encoder must know about the frame around its words; see docs/wire.md and
/// src/wire/frame.capnp.
namespace batchrpc::wire {

/// The words before a frame's body: the segment table, the root pointer and the struct `Frame`.
inline constexpr std::size_t kEnvelopeWords = 10;

/// The index of the pointer to the arguments, the result's value, or another kind's struct, within
/// the frame's words.
inline constexpr std::size_t kBodyPointer = 7;

/// The index of the pointer to a call's context or to a result's record; the pointer may be null.
inline constexpr std::size_t kContextPointer = 9;

/// Payloads of a call with at most this total size are copied and follow their frame directly.
/// Larger ones are sent in chunks from their own memory.
inline constexpr std::size_t kInlinePayloadBytes = 16 * 1024;

}  // namespace batchrpc::wire
