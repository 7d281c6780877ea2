#include "batchrpc/call/exposed.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

ExposedFunction::~ExposedFunction() = default;

void check_gathering(const std::string& name, const ExposeOptions& options) {
  if (!options.short_handler) return;
  throw InvalidArgument("expose: '" + name +
                        "' gathers calls into batches, so ExposeOptions::short_handler does not "
                        "apply; set BatchOptions::short_handler instead");
}

std::shared_ptr<ExposedFunction> ExposedFunction::with_signature(std::string_view called_as) {
  return signature == called_as ? shared_from_this() : nullptr;
}

const FunctionKind* ExposedFunction::kind() const noexcept { return nullptr; }

TransferGate::~TransferGate() = default;

ReceivePlan ExposedFunction::announce(Decoder& /*arguments*/,
                                      const std::shared_ptr<TransferGate>& /*gate*/) {
  return {};
}

}  // namespace batchrpc::detail
