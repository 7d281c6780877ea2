#include "node/node_identity.hpp"

#include "base/random_bits.hpp"

namespace batchrpc {
namespace {

Secret new_key(RandomBits& random) {
  Secret key;
  key.first = random();
  key.second = random();
  return key;
}

}  // namespace

NodeIdentity::NodeIdentity(const NodeOptions& options)
    : NodeIdentity(options, RandomBits(options.simulation.seed)) {}

NodeIdentity::NodeIdentity(const NodeOptions& options, RandomBits random)
    : options_(options), incarnation_(random() | 1), key_(new_key(random)), rank_(options.rank) {}

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
