#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "batchrpc/transport/inproc.hpp"
#include "transport/byte_ring.hpp"
#include "transport/inproc_trace.hpp"

namespace batchrpc::detail {

/// A connection inside the process. It has two sides, 0 (which connected) and 1. Data that one side
/// writes waits in the other's inbox until its time of arrival. Each side's handlers run on that
/// side's loop.
class InprocConnection : public std::enable_shared_from_this<InprocConnection> {
 public:
  /// `number` is its number in the trace.
  InprocConnection(const LinkOptions& options, std::uint64_t seed, std::uint64_t number,
                   std::shared_ptr<const InprocTrace> trace,
                   std::array<std::weak_ptr<Loop>, 2> loops, std::array<std::string, 2> hosts);

  [[nodiscard]] const std::string& host(int side) const noexcept {
    return sides_[index(side)].host;
  }

  IoResult read(int side, std::span<const std::span<std::byte>> buffers);
  IoResult write(int side, std::span<const std::span<const std::byte>> buffers);
  void wait_readable(int side, Task handler);
  void wait_writable(int side, Task handler);
  void shutdown(int side);
  /// Shuts down, and destroys the handlers.
  void close(int side);

  /// Acts as if the process of `side` were killed: the other side gets a reset after the data in
  /// flight.
  void kill(int side);
  /// Holds back the data in flight to `side`, or releases it.
  void hold(int side, bool held);
  /// Resets both sides now. Data in flight is lost.
  void cut();
  /// Holds back everything for good, except the report of a kill.
  void silence();

 private:
  struct Parcel {
    TimePoint arrival;
    std::size_t bytes;
  };
  struct Side {
    std::weak_ptr<Loop> loop;
    std::string host;
    ByteRing inbox;
    std::size_t arrived = 0;       // bytes of the inbox that may be read
    std::deque<Parcel> under_way;  // the bytes in flight
    TimePoint link_free{};         // when the link to this side has moved everything written to it
    bool held = false;             // the data in flight waits
    TimePoint reads_from{};        // a slow reader: when it reads the next bytes
    bool ending = false;           // nothing follows the data in the inbox ...
    bool ended = false;            // ... and this has arrived
    TimePoint end_arrival{};
    std::error_code end_error;  // none: an orderly end
    bool shut = false;          // by this side
    Task readable;
    Task writable;
  };

  static std::size_t index(int side) noexcept { return static_cast<std::size_t>(side); }
  Side& other(int side) noexcept { return sides_[index(1 - side)]; }
  [[nodiscard]] std::string name() const;

  // The caller of these must hold the mutex:
  [[nodiscard]] static TimePoint now(const Side& side);
  [[nodiscard]] bool reads_later(const Side& side) const;
  [[nodiscard]] bool is_readable(const Side& side) const;
  [[nodiscard]] bool is_writable(int side) noexcept {
    return sides_[index(side)].shut || sides_[index(side)].ending || other(side).shut ||
           other(side).inbox.size() < options_.capacity;
  }
  [[nodiscard]] bool is_immediate(const Side& to) const noexcept {
    return immediate_ && !to.held && to.under_way.empty();
  }
  void set_held(int side, bool held);
  void break_now(TraceEvents& events);
  void lose(Side& side, std::size_t bytes);
  void end(int side, TraceEvents& events);
  TimePoint arrival_time(Side& to, std::size_t bytes);
  void send_end(int to, std::error_code error);
  void schedule_arrival(int side, TimePoint when);
  void schedule_handlers(int side, TimePoint when);
  void wake(int side);
  void arrive(int side);
  void run_handlers(int side);

  const LinkOptions options_;
  const bool immediate_;  // written data arrives at once
  const std::uint64_t number_;
  const std::shared_ptr<const InprocTrace> trace_;
  std::mutex mutex_;
  std::array<Side, 2> sides_;
  std::uint64_t written_ = 0;
  std::mt19937_64 random_;
  const std::uint64_t break_at_;  // drawn from break_every
  bool silent_ = false;
  bool killed_ = false;
};

/// One side as a stream.
[[nodiscard]] std::unique_ptr<Stream> make_inproc_stream(
    std::shared_ptr<InprocConnection> connection, int side, std::string description);

}  // namespace batchrpc::detail
