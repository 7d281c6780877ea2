#include <algorithm>
#include <filesystem>
#include <system_error>

#include "batchrpc/base/error.hpp"
#include "torch/policy_backend.hpp"

namespace batchrpc {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> packages_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    if (entry.path().extension() == ".pt2") paths.push_back(entry.path().string());
  }
  if (problem) throw NotFound("the policy " + folder + " cannot be read: " + problem.message());
  if (paths.empty()) {
    throw InvalidArgument("the folder " + folder +
                          " has no packages (.pt2): give a folder that has, or a .pt file");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void require_kind(const std::string& path, PolicyKind kind, const PolicyOptions& options) {
  if (options.kind.value_or(kind) == kind) return;
  throw InvalidArgument(path + " is a policy of kind '" + to_string(kind) +
                        "', but PolicyOptions::kind is '" + to_string(*options.kind) + "'");
}

}  // namespace

std::shared_ptr<Policy> load_policy(const std::string& path, const PolicyOptions& asked) {
  const PolicyOptions options = detail::checked_policy_options(asked);
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status)) throw NotFound("there is no policy '" + path + "'");
  const std::string extension = fs::path(path).extension().string();
  if (fs::is_directory(status) || extension == ".pt2") {
    require_kind(path, PolicyKind::compiled, options);
    const auto paths =
        fs::is_directory(status) ? packages_in(path) : std::vector<std::string>{path};
    return detail::serve_policy(detail::load_compiled_policy(paths, options), options);
  }
  if (extension != ".pt") {
    throw InvalidArgument(path + " is not a policy: give TorchScript (.pt) or a package (.pt2)");
  }
  require_kind(path, PolicyKind::script, options);
  return detail::serve_policy(detail::load_script_policy(path, options), options);
}

}  // namespace batchrpc
