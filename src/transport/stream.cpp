#include "batchrpc/transport/security.hpp"

#include "base/glob.hpp"

namespace batchrpc {

bool PeerProof::covers(std::string_view node_name, std::string_view node_job) const noexcept {
  return matches_glob(name, node_name) && matches_glob(job, node_job);
}

// One home for each class's virtual table.
Stream::~Stream() = default;
StreamSecurity::~StreamSecurity() = default;
Listener::~Listener() = default;

}  // namespace batchrpc
