#include "batchrpc/node/exposed.hpp"

namespace batchrpc::detail {

ExposedFunction::~ExposedFunction() = default;

}  // namespace batchrpc::detail
