#include "batchrpc/transport/security.hpp"

namespace batchrpc {

// One home for each class's virtual table.
Stream::~Stream() = default;
StreamSecurity::~StreamSecurity() = default;
Listener::~Listener() = default;

}  // namespace batchrpc
