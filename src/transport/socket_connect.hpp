#pragma once

#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/log_limit.hpp"
#include "batchrpc/base/log.hpp"
#include "batchrpc/transport/transport.hpp"
#include "transport/loop_core.hpp"
#include "transport/resolver.hpp"
#include "transport/socket_user.hpp"

namespace batchrpc::detail {

class SocketConnect;

/// The connects under way of a transport.
class SocketConnects : public std::enable_shared_from_this<SocketConnects> {
 public:
  SocketConnects(std::shared_ptr<LoopCore> core, Log log)
      : core_(std::move(core)), log_(std::move(log)) {}

  /// The transport has checked the address.
  void start(const Address& address, TimePoint deadline, Transport::ConnectHandler handler);
  /// Gives them up without calling their handlers.
  void stop();

 private:
  friend class SocketConnect;
  void remove(const std::shared_ptr<SocketConnect>& connect);
  void warn_of(const OtherUser& stranger, const Address& address);

  const std::shared_ptr<LoopCore> core_;
  const Log log_;
  LogLimit strangers_{1};
  Resolver resolver_;
  std::mutex mutex_;
  std::unordered_set<std::shared_ptr<SocketConnect>> under_way_;
};

}  // namespace batchrpc::detail
