#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "batchrpc/base/function.hpp"
#include "transport/socket_address.hpp"

namespace batchrpc::detail {

/// The addresses of a name.
struct FoundAddresses {
  std::vector<SocketAddress> addresses;  // none: as `error` says
  std::error_code error;
};

/// By getaddrinfo(), which blocks, with `flags` of it.
[[nodiscard]] FoundAddresses find_addresses(const std::string& name, std::uint16_t port, int flags);

/// Finds the addresses of names that are to be connected to. Up to four threads do so, which are
/// there while there is something to find: one name whose server does not answer delays no other.
/// Nobody waits for getaddrinfo(), so a resolver may end before it. Thread-safe.
class Resolver {
 public:
  using Handler = UniqueFunction<void(FoundAddresses)>;
  using Find = std::function<FoundAddresses(const std::string& name, std::uint16_t port)>;

  static constexpr int kMostThreads = 4;

  /// Finds by getaddrinfo().
  Resolver();
  /// Finds by `find`, which several threads may call at once.
  explicit Resolver(Find find);
  ~Resolver() { stop(); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Calls `handler` on a thread of the resolver, or on this one if there can be none. One handler
  /// at a time is called. It is not called if `asker` has gone by then.
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
