#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/transport/transport.hpp"

namespace batchrpc {

/// The transports of a node, chosen by the schemes of addresses. Thread-safe: nothing changes after
/// the constructor.
class TransportSet {
 public:
  /// Makes them. Throws InvalidArgument when two serve one scheme, and what the factories throw.
  TransportSet(const std::vector<TransportFactory>& factories, const TransportContext& context);
  ~TransportSet();
  TransportSet(const TransportSet&) = delete;
  TransportSet& operator=(const TransportSet&) = delete;

  /// Throws InvalidArgument: for no address, for a scheme that none serves (it names all that are),
  /// and what Transport::check() says.
  [[nodiscard]] Address parse(std::string_view text, AddressUse use) const;

  /// As Transport; they throw InvalidArgument for a scheme that none serves.
  /// @{
  [[nodiscard]] std::optional<int> priority(const Address& address, bool same_host) const;
  std::unique_ptr<Listener> listen(const Address& address, Transport::AcceptHandler handler);
  void connect(const Address& address, TimePoint deadline, Transport::ConnectHandler handler);
  /// @}

  /// Where the node listens for the calls that it makes to itself: in the InprocNetwork that it was
  /// given, else in one that no other node sees.
  [[nodiscard]] const Address& to_itself() const noexcept { return *to_itself_; }

  /// Where it listens for others without being told to, in the order of the factories.
  [[nodiscard]] std::vector<Address> own_addresses(const ListenPlan& plan) const;

  /// Those of a peer's addresses by which this node can reach it, the best first. What a later
  /// version may understand is left out.
  [[nodiscard]] std::vector<std::string> usable(const std::vector<std::string>& addresses,
                                                bool same_host) const;

 private:
  void add(std::shared_ptr<Transport> transport);
  [[nodiscard]] Transport& of(const Address& address) const;
  [[nodiscard]] std::string forms() const;

  std::vector<std::shared_ptr<Transport>> transports_;
  std::map<std::string, Transport*, std::less<>> by_scheme_;
  std::optional<Address> to_itself_;  // empty in the constructor only
};

}  // namespace batchrpc
