#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "wire/frame.hpp"

/// Inputs that are one side of a conversation: kControlBytes that say how, then what is sent.
namespace batchrpc::fuzz {

/// The first byte: bits of Manner; the second: 0, or how large the pieces are in which it comes.
inline constexpr std::size_t kControlBytes = 2;

enum Manner : std::uint8_t {
  kIntroduced = 1,  ///< joins, and defines what it will call, before the rest
  kIsCalled = 2,    ///< is called meanwhile: ids from 1 to 3 are those of the calls (kIntroduced)
  kReads = 4,       ///< reads what comes, all of it valid frames
  kBreaksOff = 8,   ///< leaves at the end instead of staying
  kNarrow = 16,     ///< over a link that takes 4 KiB
  kProfiled = 32,   ///< while the node's calls, and what it answers, are recorded
};

/// The incarnation of the node, which owns objects: that of VirtualWorld's first.
inline constexpr std::uint64_t kOwner = 2469588189546311529U;

/// What the introduction defines, in this order; batchrpc.join is 0.
inline constexpr std::uint32_t kJoin = 0, kTwice = 1, kSize = 2, kShout = 3, kCreate = 4, kPut = 5,
                               kHold = 6, kUpdate = 7, kWorker = 8, kBlob = 9, kArrived = 10,
                               kAsk = 11, kNone = 12, kAbandon = 13, kReady = 14;

// --- inputs of the target `session`

/// The first byte of each connection: bits of how it is begun; then how many frames the peer says
/// that it has received, and two bytes with the size of what it sends, low byte first.
enum Begin : std::uint8_t {
  kHello = 1,     ///< says hello: else what is sent has to
  kResumes = 2,   ///< goes on with the session
  kBeside = 4,    ///< the connection before stays
  kLater = 8,     ///< after a second
  kOther = 16,    ///< a session of another number
  kLives = 32,    ///< of another life of the peer
  kDefines = 64,  ///< defines "twice" and calls it, before the rest
};
inline constexpr std::size_t kBeginBytes = 4;

// --- frames

struct FramePlace {
  std::size_t at = 0;     ///< from the first byte of what is sent
  std::size_t bytes = 0;  ///< of the frame alone, at least those of an envelope
};

/// The frames in `sent`, as far as it is made of them.
inline std::vector<FramePlace> frames_of(std::span<const std::byte> sent) {
  std::vector<FramePlace> frames;
  std::size_t at = 0;
  while (sent.size() - at >= wire::kEnvelopeWords * sizeof(Word)) {
    Word first = 0;
    std::memcpy(&first, sent.data() + at, sizeof first);
    const auto words = wire::frame_words(first);
    if (!words || *words < wire::kEnvelopeWords || *words > (sent.size() - at) / sizeof(Word))
      break;
    const std::size_t bytes = *words * sizeof(Word);
    frames.push_back({at, bytes});
    at += bytes;
    // What is behind it, if there is as much as it says.
    std::vector<Word> copy(*words);
    std::memcpy(copy.data(), sent.data() + frames.back().at, bytes);
    std::uint64_t behind = 0;
    try {
      const auto frame = wire::parse_frame(copy);
      if (frame.header.kind == wire::FrameKind::chunk) behind = wire::padded(frame.header.value);
      if ((frame.header.flags & wire::kInlinePayloads) != 0) {
        for (const std::uint64_t size : frame.payload_sizes) {
          if (size <= wire::kInlinePayloadBytes) behind += wire::padded(size);
        }
      }
    } catch (const std::exception&) {
      break;
    }
    if (behind <= sent.size() - at) at += behind;
  }
  return frames;
}

}  // namespace batchrpc::fuzz
