#include "batchrpc/base/executor.hpp"

namespace batchrpc {

Executor::~Executor() = default;

}  // namespace batchrpc
