#pragma once

#include <cstddef>

/// What an encoder must know of the frame that its words become: docs/wire.md,
/// src/wire/frame.capnp.
namespace batchrpc::wire {

/// Words before a frame's body: the segment table, the root pointer and the struct `Frame`.
inline constexpr std::size_t kEnvelopeWords = 10;

/// The pointer to the arguments, the result's value, or another kind's struct; an index into the
/// frame's words.
inline constexpr std::size_t kBodyPointer = 7;

/// The pointer to a call's context, or to the record of a result; null where there is none.
inline constexpr std::size_t kContextPointer = 9;

/// Payloads of a call up to this size together are copied and travel right behind their frame;
/// larger ones are sent from where they lie, in chunks.
inline constexpr std::size_t kInlinePayloadBytes = 16 * 1024;

}  // namespace batchrpc::wire
