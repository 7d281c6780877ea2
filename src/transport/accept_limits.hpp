#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/socket_address.hpp"

namespace batchrpc::detail {

/// Limits the accepted TCP connections of a transport, so that strangers cannot take all of the
/// descriptors of the process. The limits follow its soft limit of descriptors (`ulimit -n`).
/// Thread-safe.
///
/// In all it admits three quarters of the descriptors. The program keeps the rest for its files and
/// for the connections that it makes itself. From one address it admits half of that: it takes more
/// than one address to keep others out, and yet 384 processes of one machine can connect at the
/// usual 1024 descriptors. Addresses of IPv6 count one by one: the machines of a cluster often
/// share a prefix. Connections from this machine count only in all, so that a group on one machine
/// can have as many processes as the limit allows.
class AcceptLimits : public std::enable_shared_from_this<AcceptLimits> {
 public:
  struct Admission {
    /// The connection's place. The connection keeps it until its descriptor is closed. Null: it is
    /// refused.
    std::shared_ptr<void> place;
    /// Why it is refused, for a log line.
    std::string refusal;
  };

  /// Decides about a connection with these two ends.
  [[nodiscard]] Admission admit(const SocketAddress& own, const SocketAddress& peer);

 private:
  using Machine = std::array<std::byte, 16>;  // its address; of IPv4 behind zeros
  class Place;

  [[nodiscard]] static Machine machine_of(const SocketAddress& address) noexcept;
  void leave(const Machine& machine, bool is_counted_alone);

  std::mutex mutex_;  // guards what follows
  std::size_t all_ = 0;
  std::map<Machine, std::size_t> by_machine_;  // without this one
};

}  // namespace batchrpc::detail
