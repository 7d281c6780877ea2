#pragma once

#include <memory>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/node_options.hpp"

namespace batchrpc::detail {

/// The options of a handle, which may outlive what CallOptions::metadata refers to. Copies share a
/// copy of the metadata. Thread-safe, since it never changes.
class BATCHRPC_EXPORT KeptOptions {
 public:
  KeptOptions() = default;
  explicit KeptOptions(const CallOptions& options);

  [[nodiscard]] const CallOptions& get() const noexcept { return options_; }

 private:
  CallOptions options_{};
  std::shared_ptr<const void> metadata_{};  // null: the options have none
};

}  // namespace batchrpc::detail
