#pragma once

#include <memory>
#include <mutex>
#include <unordered_set>

#include "batchrpc/transport/transport.hpp"
#include "transport/loop_core.hpp"
#include "transport/resolver.hpp"

namespace batchrpc::detail {

class SocketConnect;

/// The connects under way of a transport.
class SocketConnects : public std::enable_shared_from_this<SocketConnects> {
 public:
  explicit SocketConnects(std::shared_ptr<LoopCore> core) : core_(std::move(core)) {}

  /// The transport has checked the address.
  void start(const Address& address, TimePoint deadline, Transport::ConnectHandler handler);
  /// Gives them up without calling their handlers.
  void stop();

 private:
  friend class SocketConnect;
  void remove(const std::shared_ptr<SocketConnect>& connect);

  const std::shared_ptr<LoopCore> core_;
  Resolver resolver_;
  std::mutex mutex_;
  std::unordered_set<std::shared_ptr<SocketConnect>> under_way_;
};

}  // namespace batchrpc::detail
