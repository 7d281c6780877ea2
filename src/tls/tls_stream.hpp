#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/stream.hpp"
#include "tls/outlet.hpp"
#include "tls/records.hpp"
#include "tls/tls_error.hpp"

namespace batchrpc::tls {

/// Ends a stream from outside, such as when its peer's certificate is revoked. Outlives the stream.
/// Thread-safe.
class StreamEnding {
 public:
  explicit StreamEnding(Stream& below) noexcept : below_(&below) {}

  /// Ends the stream: its node then reads the error.
  void end(std::error_code reason) noexcept;
  /// Returns the error by which it was ended, if it was.
  [[nodiscard]] std::error_code reason() const noexcept;

  /// The stream below goes.
  void forget() noexcept;
  /// Returns whether the stream is still there.
  [[nodiscard]] bool is_alive() const noexcept;

 private:
  mutable std::mutex mutex_;  // guards what follows
  Stream* below_;
  std::error_code reason_;
};

/// A stream over TLS 1.3, above a stream in plain text. The handshake is over.
///
/// Encrypted bytes that the stream below has not taken stay in the outlet, which sends them later.
/// Meanwhile try_write() takes nothing.
class TlsStream final : public Stream {
 public:
  TlsStream(std::shared_ptr<Loop> loop, std::unique_ptr<Stream> below,
            std::unique_ptr<Records> records, std::shared_ptr<const PeerProof> proof);
  ~TlsStream() override;

  IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept override;
  IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept override;
  void wait_readable(Task handler) override;
  void wait_writable(Task handler) override;
  void shutdown() noexcept override;
  [[nodiscard]] std::size_t unconfirmed_bytes() const noexcept override;
  [[nodiscard]] std::shared_ptr<const PeerProof> proof() const override { return proof_; }
  [[nodiscard]] std::string description() const override { return outlet_->below().description(); }
  [[nodiscard]] Address local_address() const override { return outlet_->below().local_address(); }

  [[nodiscard]] const std::shared_ptr<StreamEnding>& ending() const noexcept { return ending_; }

 private:
  struct Waiting;
  IoResult decrypt(std::span<const std::span<std::byte>> buffers, std::span<std::byte> memory,
                   std::size_t& moved);
  IoResult read_some(std::span<std::byte> buffer);
  void keep_unread();
  bool refill(std::span<std::byte> memory, IoResult& failed);
  [[nodiscard]] bool has_readable() const;
  std::error_code encrypt(std::span<const std::span<const std::byte>> buffers, std::size_t from,
                          std::size_t count) noexcept;
  void say_end() noexcept;

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Outlet> outlet_;
  const std::shared_ptr<const PeerProof> proof_;
  const std::shared_ptr<Waiting> waiting_;
  const std::shared_ptr<StreamEnding> ending_;

  mutable std::mutex mutex_;  // guards what OpenSSL touches: the records
  const std::unique_ptr<Records> records_;
  std::uint64_t records_written_ = 0;

  // The thread that reads uses these.
  std::vector<std::byte> unread_;  // bytes of the stream below that did not fit
  std::error_code read_error_;     // reported after the bytes that came before it
  bool drained_ = false;           // the stream below had less than was asked for
  std::size_t without_data_ = 0;   // bytes of it that have brought no data so far
};

}  // namespace batchrpc::tls
