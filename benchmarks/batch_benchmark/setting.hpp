#pragma once

#include <batchrpc/batch/batch_options.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace batch_benchmark {

/// How a batcher is set, by names that stand on the command line, such as "idle" or
/// "all-of-workers".
class Setting {
 public:
  /// Throws UsageError for an unknown name.
  explicit Setting(std::string name);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The options of a batcher that `observers` call.
  [[nodiscard]] batchrpc::BatchOptions options(const std::vector<std::string>& observers) const;

  [[nodiscard]] static const std::vector<std::string>& names();

 private:
  std::string name_;
};

}  // namespace batch_benchmark
