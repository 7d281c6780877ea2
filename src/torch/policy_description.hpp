#pragma once

#include <cstddef>
#include <string>

#include "torch/policy_weights.hpp"

namespace batchrpc::detail {

/// The key of the description in a policy's file: an extra file of TorchScript, or an entry of a
/// package's metadata.
inline constexpr const char* kPolicyKey = "batchrpc_policy";

/// The largest number of rows of a batch that a policy may be made for.
inline constexpr std::size_t kLargestPolicyBatch = 65536;

/// The description in a policy's file, as lines that scripts/export_policy.py writes:
///
///     format 1
///     torch 2.13.0
///     cpu AVX512                     (of packages for the CPU)
///     observation uint8 [4, 84, 84]
///     batch 16                       (or: any)
///     weights updatable              (or: frozen)
///     state 1f9e…                    (a digest of the weights: the same, the same weights)
///     weight conv1.bias float32 [16] (one line for each)
struct PolicyDescription {
  std::string torch{};  ///< the LibTorch version that made it
  std::string cpu{};    ///< the CPU's instruction set, as at::get_cpu_capability() names it
  RowForm observation{};
  std::size_t batch = 0;  ///< 0: any size
  bool updatable = false;
  std::string state{};  ///< empty: not given
  WeightForms weights{};
};

/// Parses a description. Throws an InvalidArgument that begins with `path`.
[[nodiscard]] PolicyDescription parse_policy_description(const std::string& path,
                                                         const std::string& text);

/// Checks compiled code. Throws InvalidArgument unless it was made for this CPU, such as "AVX512",
/// and by this LibTorch, such as "2.13.0"; the patch version may differ.
void require_made_for(const std::string& path, const PolicyDescription& description,
                      const std::string& torch, const std::string& cpu);

}  // namespace batchrpc::detail
