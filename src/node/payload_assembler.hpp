#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/node/remote_call.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

/// The calls and replies of one session whose large payloads are still coming in, chunk by chunk.
/// Used by the thread that reads.
class PayloadAssembler {
 public:
  /// `limit`: bytes of all payloads of one call.
  explicit PayloadAssembler(std::uint64_t limit) : limit_(limit) {}

  /// What is there as a whole.
  struct Whole {
    std::vector<Word> words;
    std::vector<Bytes> payloads;
  };

  /// Makes room for the payloads of a frame; where `target` (may be null) wants them, else in
  /// memory of our own. Throws BadMessage.
  void begin(const wire::FrameView& frame, const std::shared_ptr<detail::PayloadTarget>& target);

  /// Where the bytes of a chunk go; nowhere, when its call is not awaited any more. Throws
  /// BadMessage.
  [[nodiscard]] std::span<std::byte> room_for(const wire::FrameHeader& chunk);
  /// The bytes of a chunk are there; the whole, if that was the last.
  [[nodiscard]] std::optional<Whole> finish(const wire::FrameHeader& chunk);

  void clear() { assemblies_.clear(); }

 private:
  struct Assembly {
    Whole whole;
    std::vector<std::uint64_t> received;  // bytes, by payload
    std::uint64_t missing = 0;
  };

  const std::uint64_t limit_;
  std::unordered_map<std::uint64_t, Assembly> assemblies_;  // by id * 2, + 1 for replies
};

}  // namespace batchrpc
