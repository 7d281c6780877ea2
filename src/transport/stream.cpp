#include "batchrpc/transport/stream.hpp"

namespace batchrpc {

// One home for each class's virtual table.
Stream::~Stream() = default;
Listener::~Listener() = default;

}  // namespace batchrpc
