#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node/virtual_world.hpp"
#include "wire/frame.hpp"

namespace batchrpc::test {

/// One end of a connection to a node in virtual time that sends whatever bytes a test wants, and
/// keeps what comes back.
class RawPeer {
 public:
  explicit RawPeer(const VirtualWorld& world, const std::string& address = "inproc://world",
                   const std::string& host = "raw")
      : loop_(world.loop), transport_(world.network->transport(world.loop, host)) {
    transport_->connect(
        Address::parse(address), loop_->now() + std::chrono::seconds(5),
        [this](std::unique_ptr<Stream> stream, std::error_code) { stream_ = std::move(stream); });
    loop_->run_for(Duration::zero());
  }

  [[nodiscard]] bool connected() const { return stream_ != nullptr; }

  void send(std::span<const std::byte> bytes) {
    for (int tries = 0; !bytes.empty() && tries < 10000; ++tries) {
      const std::array<std::span<const std::byte>, 1> buffers{bytes};
      const IoResult result = stream_->try_write(buffers);
      bytes = bytes.subspan(result.bytes);
      loop_->run_for(Duration::zero());
      if (result.error) return;
    }
  }
  void send(const std::vector<Word>& words) { send(std::as_bytes(std::span(words))); }

  /// Says hello as a node would that begins a session.
  void say_hello(const std::string& name = "raw", std::uint64_t incarnation = 1) {
    send(
        wire::hello_frame({.incarnation = incarnation, .session = 1, .joins = true, .name = name}));
  }

  /// Whether the node has closed the connection.
  bool closed() {
    read();
    return ended_;
  }

  /// The frames that came since the last time, without the bytes behind them.
  std::vector<std::vector<Word>> frames() {
    read();
    std::vector<std::vector<Word>> all;
    while (received_.size() >= sizeof(Word)) {
      Word first = 0;
      std::memcpy(&first, received_.data(), sizeof first);
      const auto size = wire::frame_words(first);
      if (!size || *size * sizeof(Word) > received_.size()) break;
      std::vector<Word> words(*size);
      std::memcpy(words.data(), received_.data(), words.size() * sizeof(Word));
      const auto frame = wire::parse_frame(words);
      std::size_t bytes = *size * sizeof(Word);
      if (frame.header.kind == wire::FrameKind::chunk) bytes += wire::padded(frame.header.value);
      if ((frame.header.flags & wire::kInlinePayloads) != 0) {
        for (const std::uint64_t payload : frame.payload_sizes)
          bytes += wire::padded(payload);
      }
      if (bytes > received_.size()) break;
      if (wire::is_reliable(frame.header.kind)) ++reliable_;
      received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(bytes));
      all.push_back(std::move(words));
    }
    return all;
  }
  /// Acknowledges all that frames() has taken, of one session.
  void acknowledge() {
    send(wire::plain_frame({.kind = wire::FrameKind::acknowledge, .acknowledged = reliable_}));
  }
  /// The first frame of this kind that has come.
  std::optional<std::vector<Word>> frame(wire::FrameKind kind) {
    for (auto& words : frames()) {
      if (wire::parse_frame(words).header.kind == kind) return std::move(words);
    }
    return std::nullopt;
  }

 private:
  void read() {
    loop_->run_for(Duration::zero());
    std::vector<std::byte> buffer(64 * 1024);
    while (stream_ && !ended_) {
      const std::array<std::span<std::byte>, 1> buffers{std::span(buffer)};
      const IoResult result = stream_->try_read(buffers);
      if (result.error || result.end) ended_ = true;
      if (result.bytes == 0) return;
      received_.insert(received_.end(), buffer.begin(),
                       buffer.begin() + static_cast<std::ptrdiff_t>(result.bytes));
      loop_->run_for(Duration::zero());
    }
  }

  std::shared_ptr<VirtualLoop> loop_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> received_;
  std::uint64_t reliable_ = 0;  // frames
  bool ended_ = false;
};

}  // namespace batchrpc::test
