#include "batchrpc/node/exposed.hpp"

namespace batchrpc::detail {

ExposedFunction::~ExposedFunction() = default;

TransferGate::~TransferGate() = default;

Reception ExposedFunction::announce(Decoder& /*arguments*/,
                                    const std::shared_ptr<TransferGate>& /*gate*/) {
  return {};
}

}  // namespace batchrpc::detail
