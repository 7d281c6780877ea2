#include "batchrpc/node/exposed.hpp"

namespace batchrpc::detail {

ExposedFunction::~ExposedFunction() = default;

std::shared_ptr<void> ExposedFunction::announce(Decoder& /*arguments*/) { return nullptr; }

}  // namespace batchrpc::detail
