#include "batch_benchmark/setting.hpp"

#include <algorithm>
#include <utility>

#include "common/command_line.hpp"

namespace batch_benchmark {

namespace {

constexpr std::string_view kWorkers = "-workers";

}  // namespace

const std::vector<std::string>& Setting::names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const std::string start : {"idle", "all-of", "min-size"}) {
      names.push_back(start);
      names.push_back(start + std::string(kWorkers));
    }
    return names;
  }();
  return kNames;
}

Setting::Setting(std::string name) : name_(std::move(name)) {
  const auto& known = names();
  if (std::find(known.begin(), known.end(), name_) != known.end()) return;
  std::string list;
  for (const std::string& other : known)
    list += (list.empty() ? "" : ", ") + other;
  throw batchrpc_examples::UsageError("--batcher: '" + name_ + "' is not one of " + list);
}

batchrpc::BatchOptions Setting::options(const std::vector<std::string>& observers) const {
  batchrpc::BatchOptions options;
  options.short_handler = !name_.ends_with(kWorkers);
  if (name_.starts_with("all-of")) options.all_of = observers;
  if (name_.starts_with("min-size")) options.min_size = observers.size();
  return options;
}

}  // namespace batch_benchmark
