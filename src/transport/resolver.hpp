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
/// there is something to find. Nobody waits for that thread: a resolver may end before it.
/// Thread-safe.
class Resolver {
 public:
  struct Found {
    std::vector<SocketAddress> addresses;  // none: as `error` says
    std::error_code error;
  };
  /// Called on the resolver's thread, also after the resolver's end.
  using Handler = UniqueFunction<void(Found)>;

  Resolver();
  void resolve(std::string name, std::uint16_t port, Handler handler);

 private:
  struct Wanted;
  struct State;
  static void work(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace batchrpc::detail
