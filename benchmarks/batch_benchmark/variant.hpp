#pragma once

#include <batchrpc/torch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "batch_benchmark/acting_policy.hpp"
#include "batch_benchmark/setting.hpp"

namespace batch_benchmark {

/// How actions are requested.
enum class How : unsigned char {
  batcher,    ///< a Batcher
  unbatched,  ///< a function that infers for one row
  by_hand,    ///< the tutorial's pattern: the last of all observers infers for all
};

/// One way to answer observers; it is measured in turn with others.
struct Variant {
  How how = How::batcher;
  std::string name{};                ///< a name such as "batcher, idle"
  std::optional<Setting> setting{};  ///< for a batcher
  bool on_workers =
      false;  ///< for the others: the function runs on workers, not as a short handler
};

Variant batcher_variant(const Setting& setting);
Variant unbatched_variant(bool on_workers);
Variant by_hand_variant(bool on_workers);

/// Exposes a function std::int64_t(at::Tensor) of a variant, with its own policy, on a node for as
/// long as this object exists.
class Served {
 public:
  /// `adjust` may change the batcher's options last.
  Served(const batchrpc::Node& node, const Variant& variant,
         const std::vector<std::string>& observers, bool grad = true,
         const std::function<void(batchrpc::BatchOptions&)>& adjust = {});
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  [[nodiscard]] static const char* function() { return "act"; }
  /// From now on no batch waits for observers that have stopped calling.
  void release();
  /// Rows per batch; 1 without batches.
  [[nodiscard]] double mean_batch() const;

 private:
  class ByHand;
  using Batcher = batchrpc::Batcher<std::int64_t(at::Tensor)>;

  const batchrpc::Node& node_;
  std::shared_ptr<ActingPolicy> policy_;
  std::optional<Batcher> batcher_;
  std::shared_ptr<ByHand> by_hand_;
};

}  // namespace batch_benchmark
