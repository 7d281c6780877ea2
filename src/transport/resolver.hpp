#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "batchrpc/base/function.hpp"
#include "transport/socket_address.hpp"

namespace batchrpc::detail {

/// Finds the addresses of names by getaddrinfo(), which blocks, on a thread that is there while
/// there is something to find. Nobody waits for getaddrinfo(): a resolver may end before it.
/// Thread-safe.
class Resolver {
 public:
  struct Found {
    std::vector<SocketAddress> addresses;  // none: as `error` says
    std::error_code error;
  };
  using Handler = UniqueFunction<void(Found)>;

  Resolver();
  ~Resolver() { stop(); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Calls `handler` on the resolver's thread; on this one if there can be none. Not if `asker` has
  /// gone by the time that the name's turn comes.
  void resolve(std::weak_ptr<void> asker, std::string name, std::uint16_t port, Handler handler);

  /// No handler is called from now on; returns when none is being called.
  void stop();

 private:
  struct Wanted;
  struct State;
  bool start_thread();
  static void work(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace batchrpc::detail
