#include "node/node_identity.hpp"

#include <random>

namespace batchrpc {
namespace {

std::uint64_t new_incarnation(std::uint64_t seed) {
  if (seed != 0) return std::mt19937_64(seed)() | 1;
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

NodeIdentity::NodeIdentity(const NodeOptions& options)
    : options_(options),
      incarnation_(new_incarnation(options.simulation.seed)),
      rank_(options.rank) {}

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
