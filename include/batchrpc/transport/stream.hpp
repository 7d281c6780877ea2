#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "batchrpc/base/address.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"

namespace batchrpc {

/// What a try to read or write did.
struct [[nodiscard]] IoResult {
  std::size_t bytes = 0;  ///< how many were moved
  std::error_code error;  ///< set: the stream is of no more use in this direction
  bool end = false;       ///< read: the other side has closed, and everything was read
  /// Neither bytes nor an error nor the end: nothing can be moved now; wait and try again.
  [[nodiscard]] bool would_block() const noexcept { return bytes == 0 && !error && !end; }
};

/// A connection: bytes in order, both ways, with back pressure. Readiness style: try, and when that
/// would block, wait. So no buffer belongs to an idle connection. A stream may wrap another one,
/// and change its bytes (see Transport).
///
/// Threads: try_read(), try_write() and shutdown() may be called on any thread, each direction by
/// one thread at a time; the other functions and the destructor only while no try is under way,
/// wait_readable() and wait_writable() concurrently with tries of the other direction at most.
/// Handlers run on the loop.
class BATCHRPC_EXPORT Stream {
 public:
  virtual ~Stream();

  /// Reads into the buffers, in order, what is there now. Never blocks.
  virtual IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept = 0;

  /// Writes from the buffers, in order, as much as can be taken now. Never blocks. At most 64
  /// buffers are looked at.
  virtual IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept = 0;

  /// Calls `handler` once, on the loop, when try_read() will not block (data, the end, or an
  /// error). One wait a direction at a time. After close() or destruction, a waiting handler is
  /// destroyed without being called.
  virtual void wait_readable(Task handler) = 0;
  /// The same for try_write().
  virtual void wait_writable(Task handler) = 0;

  /// Ends both directions: the other side reads the end after what was written; tries of this side
  /// give an error or the end, waiting handlers are called. The descriptor stays until destruction.
  /// Idempotent.
  virtual void shutdown() noexcept = 0;

  /// Bytes that try_write() has taken and that would be lost if this side ended now, such as those
  /// that TCP has not seen acknowledged. Any thread.
  [[nodiscard]] virtual std::size_t unconfirmed_bytes() const noexcept { return 0; }

  /// The other side's address as far as it is known, for messages.
  [[nodiscard]] virtual std::string description() const = 0;

  /// The address of this side, for a node that must advertise from where it reached another.
  [[nodiscard]] virtual Address local_address() const = 0;
};

/// Accepts connections until it is destroyed.
class BATCHRPC_EXPORT Listener {
 public:
  virtual ~Listener();
  /// Where it listens, as others are told: with the port that the system chose.
  [[nodiscard]] virtual Address address() const = 0;
};

}  // namespace batchrpc
