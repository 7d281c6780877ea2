#include "batchrpc/node/exposed.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

ExposedFunction::~ExposedFunction() = default;

void refuse_exclusive(const std::string& name) {
  throw InvalidArgument("expose: '" + name +
                        "' gathers calls and runs them later, so ExposeOptions::exclusive would "
                        "keep nobody out; set BatchOptions::exclusive instead");
}

std::shared_ptr<void> ExposedFunction::announce(Decoder& /*arguments*/) { return nullptr; }

}  // namespace batchrpc::detail
