#include "node/node_addresses.hpp"

#include "node/options_check.hpp"

#ifdef BATCHRPC_HAS_TLS
#include "tls/make_security.hpp"
#else
#include "node/no_security.hpp"
#endif

namespace batchrpc {
namespace {

std::shared_ptr<StreamSecurity> security_of(const NodeOptions& options,
                                            [[maybe_unused]] const std::shared_ptr<Loop>& loop,
                                            const Log& log) {
  if (options.security.insecure && !options.transports.empty()) {
    log.warning(
        "NodeOptions::security.insecure is set: TCP connections are neither encrypted nor "
        "authenticated");
  }
#ifdef BATCHRPC_HAS_TLS
  return tls::make_security(options.security, {.name = options.name, .job = options.job}, loop,
                            log);
#else
  return no_security(options.security);
#endif
}

}  // namespace

NodeAddresses::NodeAddresses(const NodeOptions& options, const NodeIdentity& identity,
                             const std::shared_ptr<Loop>& loop, const Log& log)
    : options_(options),
      identity_(identity),
      host_(host_identity()),
      security_(security_of(options, loop, log)),
      transports_(options.transports,
                  TransportContext{.loop = loop,
                                   .node = options.name,
                                   .incarnation = identity.number_for_addresses(),
                                   .log = log,
                                   .security = security_}),
      listening_(options, transports_) {
  check_addresses(options, transports_);
}

Member NodeAddresses::self() const {
  std::vector<std::string> addresses = listening_.advertised();
  if (addresses.size() > kMaxAddresses) addresses.resize(kMaxAddresses);
  return {.name = options_.name,
          .rank = identity_.rank(),
          .incarnation = identity_.incarnation(),
          .host = host_,
          .addresses = std::move(addresses)};
}

bool NodeAddresses::is_on_this_host(const Member& member) const {
  return member.host == host_ && !host_.empty();
}

std::vector<std::string> NodeAddresses::usable(const Member& member) const {
  return transports_.usable(member.addresses, is_on_this_host(member));
}

std::string NodeAddresses::better(const Member& member, const std::string& used) const {
  const auto addresses = usable(member);
  if (addresses.empty()) return {};
  const auto priority = [&](const std::string& text) {
    return transports_.priority(Address::parse(text), is_on_this_host(member));
  };
  const auto now = priority(used);
  // An address without a priority, such as a tunnel's, was chosen by the user: it stays.
  return now && *priority(addresses.front()) > *now ? addresses.front() : "";
}

}  // namespace batchrpc
