#include "batchrpc/node/exposed.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

ExposedFunction::~ExposedFunction() = default;

void refuse_exclusive(const std::string& name) {
  throw InvalidArgument("expose: '" + name +
                        "' gathers calls and runs them later, so ExposeOptions::exclusive would "
                        "keep nobody out; set BatchOptions::exclusive instead");
}

TransferGate::~TransferGate() = default;

Reception ExposedFunction::announce(Decoder& /*arguments*/,
                                    const std::shared_ptr<TransferGate>& /*gate*/) {
  return {};
}

}  // namespace batchrpc::detail
