#include "batchrpc/call/kept_options.hpp"

#include <string>
#include <vector>

namespace batchrpc::detail {

namespace {

struct OwnedMetadata {
  std::string text;
  std::vector<MetadataEntry> entries;
};

}  // namespace

KeptOptions::KeptOptions(const CallOptions& options) : options_(options) {
  if (options.metadata.empty()) return;
  const auto owned = std::make_shared<OwnedMetadata>();
  for (const MetadataEntry& entry : options.metadata)
    owned->text.append(entry.key).append(entry.value);
  std::string_view rest = owned->text;
  for (const MetadataEntry& entry : options.metadata) {
    const std::string_view key = rest.substr(0, entry.key.size());
    const std::string_view value = rest.substr(key.size(), entry.value.size());
    owned->entries.push_back({.key = key, .value = value});
    rest.remove_prefix(key.size() + value.size());
  }
  options_.metadata = owned->entries;
  metadata_ = owned;
}

}  // namespace batchrpc::detail
