#include "batch_benchmark/sections.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"

namespace batch_benchmark {

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections{
      {"inprocess", measure_inprocess}, {"remote", measure_remote},
      {"isolate", measure_isolate},     {"memory", measure_memory},
      {"adaptive", measure_adaptive},   {"sweeps", measure_sweeps},
      {"peer", measure_peer, false},
  };
  return kSections;
}

const Section& section_of(const std::string& name) {
  const auto& all = sections();
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Section& section) { return section.name == name; });
  if (at == all.end()) throw batchrpc_examples::UsageError("there is no section '" + name + "'");
  return *at;
}

}  // namespace batch_benchmark
