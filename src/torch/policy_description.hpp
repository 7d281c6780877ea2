#pragma once

#include <cstddef>
#include <string>

#include "torch/policy_weights.hpp"

namespace batchrpc::detail {

/// Under what a policy's file describes itself: of TorchScript an extra file, of packages an entry
/// of the metadata.
inline constexpr const char* kPolicyKey = "batchrpc_policy";

/// Rows of a batch that a policy is made for, at most.
inline constexpr std::size_t kLargestPolicyBatch = 65536;

/// What a policy's file says of itself, in lines that scripts/export_policy.py writes:
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
  std::string torch{};  ///< the LibTorch that it was made by
  std::string cpu{};    ///< what instructions it has, as at::get_cpu_capability() names them
  RowForm observation{};
  std::size_t batch = 0;  ///< 0: any
  bool updatable = false;
  std::string state{};  ///< empty: it does not say
  WeightForms weights{};
};

/// Throws InvalidArgument that begins with `path`.
[[nodiscard]] PolicyDescription parse_policy_description(const std::string& path,
                                                         const std::string& text);

/// Of compiled code: throws InvalidArgument unless it was made by this LibTorch, such as "2.13.0",
/// but for its patches, and for this CPU, such as "AVX512".
void require_made_for(const std::string& path, const PolicyDescription& description,
                      const std::string& torch, const std::string& cpu);

}  // namespace batchrpc::detail
