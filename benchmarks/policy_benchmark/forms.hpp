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
  std::string name{};   ///< as on the command line
  std::string title{};  ///< as in tables
  std::shared_ptr<batchrpc::Policy> policy{};
};

[[nodiscard]] const std::vector<std::string>& form_names();
/// Whether a form is a package that scripts/export_policy.py has compiled.
[[nodiscard]] bool is_compiled(std::string_view form);

/// The forms of a network that there are, eager first, all with the same weights: those of the
/// folder of policies where there is one.
[[nodiscard]] std::vector<Form> load_forms(const std::string& network, const Options& options);

/// A line that names the forms that the folder of policies lacks, unless some were asked for; or
/// nothing.
[[nodiscard]] std::string left_out(const std::string& network, const Options& options);

/// A batch of observations at random, the same for the same size.
[[nodiscard]] at::Tensor some_observations(const batchrpc::PolicyInfo& info, int batch);

/// Throws std::runtime_error unless all forms say the same of such a batch, to 1e-4, or 1e-2
/// on a GPU.
void check_equal(const std::vector<Form>& forms, int batch);

}  // namespace policy_benchmark
