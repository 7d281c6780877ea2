#include "batchrpc/call/host.hpp"

namespace batchrpc {

Host::~Host() = default;

}  // namespace batchrpc
