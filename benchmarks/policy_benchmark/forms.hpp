#pragma once

#include <batchrpc/torch/policy.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy_benchmark/options.hpp"

namespace policy_benchmark {

/// One way to run a network.
struct Form {
  std::string name{};   ///< name on the command line
  std::string title{};  ///< name in tables
  std::shared_ptr<batchrpc::Policy> policy{};
};

[[nodiscard]] const std::vector<std::string>& form_names();
/// Whether a form is a package compiled by scripts/export_policy.py.
[[nodiscard]] bool is_compiled(std::string_view form);

/// The available forms of a network, eager first, all with the same weights. Those of the folder of
/// policies if there is one.
[[nodiscard]] std::vector<Form> load_forms(const std::string& network, const Options& options);

/// A line that names the forms missing in the folder of policies; empty if none is missing or if
/// forms were requested.
[[nodiscard]] std::string left_out(const std::string& network, const Options& options);

/// Random observations, the same for the same batch size.
[[nodiscard]] at::Tensor some_observations(const batchrpc::PolicyInfo& info, int batch);

/// Throws std::runtime_error unless all forms give the same output for such a batch, to 1e-4, or
/// 1e-2 on a GPU.
void check_equal(const std::vector<Form>& forms, int batch);

}  // namespace policy_benchmark
