#include "policy_benchmark/forms.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <filesystem>
#include <stdexcept>

#include "actor_critic/network.hpp"
#include "common/command_line.hpp"
#include "common/passing_folder.hpp"

namespace policy_benchmark {
namespace {

namespace fs = std::filesystem;
namespace rpc = batchrpc;

struct Source {
  const char* name;
  const char* title;
  const char* path;  // in the folder of the network's policies
  bool updatable;
  bool is_compiled;
};

constexpr Source kSources[] = {
    {"eager", "eager", "", true, false},
    {"script", "TorchScript, frozen", "script.pt", false, false},
    {"script-updatable", "TorchScript, updatable", "script.pt", true, false},
    {"frozen", "compiled, frozen", "frozen", false, true},
    {"dynamic", "compiled, frozen, any batch", "dynamic", false, true},
    {"updatable", "compiled, updatable", "updatable", true, true},
};

std::vector<std::size_t> sizes_of(const Options& options) {
  return {options.batches.begin(), options.batches.end()};
}

bool wanted(const Source& source, const Options& options) {
  const auto& names = options.forms;
  if (names.empty()) return !(options.cuda_graphs && source.is_compiled && source.updatable);
  return std::find(names.begin(), names.end(), source.name) != names.end();
}

/// Throws if a package must split or pad the batches: its figures would not be comparable.
void require_sizes(const rpc::Policy& policy, const std::string& path, const Options& options) {
  const std::vector<std::size_t>& sizes = policy.info().batch_sizes;
  for (const std::size_t batch : sizes_of(options)) {
    if (sizes.empty() || std::find(sizes.begin(), sizes.end(), batch) != sizes.end()) continue;
    const std::string size = std::to_string(batch);
    throw batchrpc_examples::UsageError("--batch " + size + ": " + path +
                                        " has no package of that size; export it with --batch " +
                                        size + ", or leave it out here");
  }
}

}  // namespace

const std::vector<std::string>& form_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Source& source : kSources)
      names.emplace_back(source.name);
    return names;
  }();
  return kNames;
}

bool is_compiled(std::string_view form) {
  return std::any_of(std::begin(kSources), std::end(kSources), [&](const Source& source) {
    return source.is_compiled && source.name == form;
  });
}

std::string left_out(const std::string& network, const Options& options) {
  if (options.policies.empty() || !options.forms.empty()) return "";
  const fs::path folder = fs::path(options.policies) / network;
  std::string names;
  for (const Source& source : kSources) {
    if (!fs::exists(folder / source.path))
      names += (names.empty() ? "" : ", ") + std::string(source.name);
  }
  if (names.empty()) return "";
  return "left out, because " + folder.string() + " lacks them: " + names +
         " (make them with scripts/export_policy.py --forms and a PyTorch of LibTorch's version)\n";
}

std::vector<Form> load_forms(const std::string& network, const Options& options) {
  torch::manual_seed(1);
  const auto module = network == "mlp" ? actor_critic::make_mlp() : actor_critic::make_atari();
  const batchrpc_examples::PassingFolder own("policy_benchmark");
  fs::path folder = fs::path(options.policies) / network;
  if (options.policies.empty()) {
    folder = own.path();
    actor_critic::save_script(*module, (folder / "script.pt").string());
  } else {
    const std::string script = (folder / "script.pt").string();
    try {
      actor_critic::load_weights(*module, script);
    } catch (const rpc::InvalidArgument& error) {
      throw std::runtime_error(script + " has another network than this program's '" + network +
                               "' (export it without --actions): " + error.what());
    }
  }
  std::vector<Form> forms;
  for (const Source& source : kSources) {
    const bool eager = forms.empty();  // the other forms are compared with it
    const fs::path path = folder / source.path;
    if (!eager && !wanted(source, options)) continue;
    if (!eager && !fs::exists(path)) {
      if (options.forms.empty()) continue;
      throw std::runtime_error("--form " + std::string(source.name) + ": there is no " +
                               path.string() +
                               "; export it with scripts/export_policy.py, and give the "
                               "parent of its folder with --policies");
    }
    rpc::PolicyOptions settings;
    settings.updatable = source.updatable;
    settings.device = options.device;
    settings.cuda_graphs = options.cuda_graphs;
    settings.warm_up = sizes_of(options);
    if (eager) settings.observation = module->observation();
    forms.push_back({source.name, source.title,
                     eager ? rpc::make_eager_policy(module, settings)
                           : rpc::load_policy(path.string(), settings)});
    require_sizes(*forms.back().policy, path.string(), options);
  }
  return forms;
}

at::Tensor some_observations(const rpc::PolicyInfo& info, int batch) {
  std::vector<std::int64_t> shape{batch};
  shape.insert(shape.end(), info.observation.sizes.begin(), info.observation.sizes.end());
  torch::manual_seed(static_cast<std::uint64_t>(batch));
  return info.observation.type == at::kByte ? at::randint(0, 256, shape, at::kByte)
                                            : at::randn(shape);
}

void check_equal(const std::vector<Form>& forms, int batch) {
  const at::Tensor observations = some_observations(forms.front().policy->info(), batch);
  const auto expected = forms.front().policy->forward(observations).tensors;
  // Convolutions on a GPU are rounded to TF32.
  const double tolerance = forms.front().policy->info().device == "cpu" ? 1e-4 : 1e-2;
  for (const Form& form : forms) {
    const auto got = form.policy->forward(observations).tensors;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (got.size() == expected.size() && at::allclose(got[i], expected[i], tolerance, tolerance))
        continue;
      throw std::runtime_error("the " + form.title +
                               " policy's output differs from the eager one's");
    }
  }
}

}  // namespace policy_benchmark
