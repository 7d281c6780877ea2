#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "batchrpc/base/address.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"

namespace batchrpc {

/// The result of one attempt to read or write.
struct [[nodiscard]] IoResult {
  std::size_t bytes = 0;  ///< the number of bytes moved
  std::error_code error;  ///< if set, the stream is unusable in this direction
  bool end = false;       ///< read: the peer closed the stream, and everything was read
  /// Returns whether nothing could be moved now: neither bytes nor an error nor the end. Wait, then
  /// try again.
  [[nodiscard]] bool would_block() const noexcept { return bytes == 0 && !error && !end; }
};

/// What a stream has proved about its peer before any frame is read. The node that the peer says it
/// is must match both patterns, in which `*` stands for any characters.
struct PeerProof {
  /// Who the peer is, for people, logs and metrics: "spiffe://example.org/job/run1/node/worker1".
  std::string identity{};
  std::string job = "*";   ///< the pattern of the jobs that it may be part of (NodeOptions::job)
  std::string name = "*";  ///< the pattern of the names that it may bear (NodeOptions::name)

  /// Whether the peer may say that it is the node of this name, of this job.
  [[nodiscard]] BATCHRPC_EXPORT bool covers(std::string_view node_name,
                                            std::string_view node_job) const noexcept;
};

/// A connection: an ordered byte stream in both directions, with back pressure. It reports
/// readiness: try, and wait if that would block. So an idle connection needs no buffer. A stream
/// may wrap another one, and change its bytes (see Transport).
///
/// Threads: try_read(), try_write() and shutdown() may be called on any thread, each direction by
/// one thread at a time. wait_readable() and wait_writable() may run concurrently with attempts in
/// the other direction only. All other functions and the destructor must not run during an attempt.
/// Handlers run on the loop.
class BATCHRPC_EXPORT Stream {
 public:
  virtual ~Stream();

  /// Reads the available bytes into the buffers, in order. Never blocks.
  virtual IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept = 0;

  /// Writes from the buffers, in order, as much as fits now. Never blocks. Uses at most 64 buffers.
  virtual IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept = 0;

  /// Calls `handler` once, on the loop, when try_read() will not block (data, the end, or an
  /// error). One wait per direction at a time. After close() or destruction, a waiting handler is
  /// destroyed without being called.
  virtual void wait_readable(Task handler) = 0;
  /// Does the same for try_write().
  virtual void wait_writable(Task handler) = 0;

  /// Ends both directions. The peer reads the end after the written data. Attempts on this side
  /// return an error or the end, and waiting handlers are called. The descriptor stays until
  /// destruction. Idempotent.
  virtual void shutdown() noexcept = 0;

  /// Returns the bytes that try_write() has taken and that would be lost if this side ended now,
  /// such as bytes that TCP has not seen acknowledged. Any thread.
  [[nodiscard]] virtual std::size_t unconfirmed_bytes() const noexcept { return 0; }

  /// Returns what is proved about the peer; null if nothing is. It never changes.
  [[nodiscard]] virtual std::shared_ptr<const PeerProof> proof() const { return nullptr; }

  /// Returns the peer's address as far as it is known, for messages.
  [[nodiscard]] virtual std::string description() const = 0;

  /// Returns the local address, for a node that must advertise the address from which it reached
  /// another.
  [[nodiscard]] virtual Address local_address() const = 0;
};

/// Accepts connections until it is destroyed.
class BATCHRPC_EXPORT Listener {
 public:
  virtual ~Listener();
  /// Returns the address to advertise, with the port that the system chose.
  [[nodiscard]] virtual Address address() const = 0;
};

}  // namespace batchrpc
