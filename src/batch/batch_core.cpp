#include "batchrpc/batch/batch_core.hpp"

#include "batch/aggregator.hpp"
#include "batch/options_check.hpp"

namespace batchrpc {

std::string_view to_string(BatchReason reason) noexcept {
  constexpr std::array<std::string_view, kBatchReasons> kNames{
      "idle", "size", "preferred", "min_size", "all", "wait", "flush", "full"};
  const auto index = static_cast<std::size_t>(reason);
  return index < kNames.size() ? kNames[index] : "unknown";  // NOLINT: checked
}

namespace detail {

BatchCall::BatchCall() = default;
BatchCall::~BatchCall() = default;
BatchCore::~BatchCore() = default;

std::shared_ptr<BatchCore> BatchCore::make(BatchOptions options, BatchWork work) {
  check_options(options, work);
  return std::make_shared<Aggregator>(std::move(options), std::move(work));
}

}  // namespace detail
}  // namespace batchrpc
