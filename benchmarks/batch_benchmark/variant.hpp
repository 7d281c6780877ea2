#pragma once

#include <batchrpc/torch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "batch_benchmark/acting_policy.hpp"
#include "batch_benchmark/setting.hpp"

namespace batch_benchmark {

/// How actions are asked for.
enum class How : unsigned char {
  batcher,    ///< a Batcher
  unbatched,  ///< a function that infers for one row
  by_hand,    ///< the tutorial's pattern: the last of all observers infers for all
};

/// One way to answer observers, which is measured in turn with others.
struct Variant {
  How how = How::batcher;
  std::string name{};                ///< such as "batcher, idle"
  std::optional<Setting> setting{};  ///< of a batcher
  bool on_workers = false;           ///< of the others: its function is no short handler
};

Variant batcher_variant(const Setting& setting);
Variant unbatched_variant(bool on_workers);
Variant by_hand_variant(bool on_workers);

/// A function std::int64_t(at::Tensor) on a node, of a variant and with a policy of its own, for as
/// long as this lives.
class Served {
 public:
  /// `adjust` has the last word on a batcher's options.
  Served(const batchrpc::Node& node, const Variant& variant,
         const std::vector<std::string>& observers, bool grad = true,
         const std::function<void(batchrpc::BatchOptions&)>& adjust = {});
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  [[nodiscard]] static const char* function() { return "act"; }
  /// From now on nobody waits for observers that do not call any more.
  void release();
  /// Rows of a batch; 1 where there are none.
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
