#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes_of.hpp"
#include "batchrpc/base/bytes.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

/// A piece of a large payload, which is sent behind its header.
struct PayloadChunk {
  Bytes owner;
  std::span<const std::byte> bytes;
  std::size_t padding = 0;
};

/// The large payloads that an output queue has yet to send, in chunks. Calls and replies take
/// turns, a chunk each. Of a call's payloads, wire::kEagerBytes are sent at once. The rest is sent
/// when the peer has granted credit. Not thread-safe: the queue locks.
class OutgoingPayloads {
 public:
  void add(std::uint64_t call, bool of_reply, std::vector<Bytes>&& payloads, std::uint64_t bytes);

  /// A chunk that is to be written, with its header.
  struct Next {
    wire::FrameHeader header;
    PayloadChunk chunk;
    std::uint64_t finished =
        0;  ///< the bytes of all payloads of the call or reply, if this is its last chunk
    bool of_reply = false;
  };
  /// Returns the next chunk, of at most `most` bytes; nothing if none may be sent. Payloads that
  /// are completely sent are appended to `released`.
  std::optional<Next> next(std::size_t most, std::vector<Bytes>& released);

  /// pause() holds the rest of a call's payloads back, resume() lets it be sent. Each returns the
  /// bytes of all payloads of the call if it changed their state, else 0.
  std::uint64_t pause(std::uint64_t call);
  std::uint64_t resume(std::uint64_t call);

  /// The state of a call's payloads when they were cut off.
  struct CutOff {
    std::uint64_t bytes = 0;  ///< the bytes of all its payloads
    bool was_paused = false;  ///< whether they were paused
    bool was_begun = false;   ///< whether some of them had been sent
    bool incomplete = false;  ///< whether some of them had not
  };
  /// Moves the payloads of a call to `payloads`. The rest of them is never sent.
  std::optional<CutOff> cut_off(std::uint64_t call, std::vector<Bytes>& payloads);

  /// Whether no payload is ready to be sent.
  [[nodiscard]] bool none_ready() const noexcept { return ready_.empty(); }
  /// The unsent bytes of payloads that are ready, that wait for credit, and that are paused.
  [[nodiscard]] std::size_t ready_bytes() const { return rest_of(ready_); }
  [[nodiscard]] std::size_t ungranted_bytes() const { return rest_of(ungranted_); }
  [[nodiscard]] std::size_t paused_bytes() const { return rest_of(paused_); }

  /// Takes no memory, as moving would.
  void swap(OutgoingPayloads& other) noexcept {
    ready_.swap(other.ready_);
    ungranted_.swap(other.ungranted_);
    paused_.swap(other.paused_);
  }

 private:
  struct Sender {
    std::uint64_t call = 0;
    bool of_reply = false;
    std::vector<Bytes> payloads;
    std::size_t index = 0;    // the index of the payload that is being sent
    std::size_t offset = 0;   // the bytes of it that have been sent
    std::uint64_t bytes = 0;  // the bytes of all payloads
    bool granted = false;     // the peer has given credit for the rest

    bool skip_sent();
    [[nodiscard]] std::size_t rest() const;
    [[nodiscard]] std::size_t eager_left() const;
  };
  struct Taken {
    Sender sender;
    bool was_paused = false;
  };

  std::optional<Taken> take(std::uint64_t call);
  template <class Senders>
  static std::optional<Sender> take(Senders& from, std::uint64_t call);
  template <class Senders>
  static std::size_t rest_of(const Senders& all) {
    std::size_t bytes = 0;
    for (const Sender& sender : all)
      bytes += sender.rest();
    return bytes;
  }

  std::deque<Sender> ready_;       // each sends a chunk in turn
  std::vector<Sender> ungranted_;  // have sent all that they may without credit
  std::vector<Sender> paused_;     // the peer does not want them yet
};

}  // namespace batchrpc
