#pragma once

#include <initializer_list>
#include <map>
#include <memory>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/stream.hpp"

namespace batchrpc {

/// Several transports as one, chosen by an address's scheme: sockets and an in-process network,
/// say.
class BATCHRPC_EXPORT CompositeTransport final : public Transport {
 public:
  CompositeTransport() = default;
  ~CompositeTransport() override;

  /// Has `transport` serve the `schemes`, in place of what served them before. Before the first
  /// listen() or connect().
  void add(std::initializer_list<Address::Scheme> schemes, std::shared_ptr<Transport> transport);

  /// Both throw InvalidArgument for a scheme that nothing serves.
  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override;
  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override;

 private:
  [[nodiscard]] Transport& of(const Address& address) const;

  std::map<Address::Scheme, std::shared_ptr<Transport>> transports_;
};

}  // namespace batchrpc
