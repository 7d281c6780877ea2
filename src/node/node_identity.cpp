#include "node/node_identity.hpp"

#include <string>

#include "base/random_secret.hpp"

namespace batchrpc {

NodeIdentity::NodeIdentity(const NodeOptions& options)
    : NodeIdentity(options, RandomBits(options.simulation.seed)) {}

NodeIdentity::NodeIdentity(const NodeOptions& options, RandomBits random)
    : options_(options),
      incarnation_(random() | 1),
      key_(random_secret(random)),
      rank_(options.rank) {}

// A name has no zero byte, so no two purposes are equal.
Secret NodeIdentity::secret_for(std::string_view peer, std::uint64_t incarnation) const {
  return derive_secret(key_, std::string(peer) + '\0' + std::to_string(incarnation));
}

std::uint64_t NodeIdentity::number_for_addresses() const noexcept {
  return derive_secret(key_, "addresses").first | 1;
}

PeerIdentity NodeIdentity::as_peer() const {
  return {.name = options_.name, .rank = rank(), .incarnation = incarnation_};
}

wire::Hello NodeIdentity::hello() const {
  return {.rank = rank(),
          .incarnation = incarnation_,
          .session = 0,
          .received = 0,
          .name = options_.name,
          .job = options_.job};
}

}  // namespace batchrpc
