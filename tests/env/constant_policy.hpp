#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include <batchrpc/env.hpp>

namespace batchrpc::test {

/// Chooses 1 for every environment, and gives the number of its row, from 1 on, beside it; says
/// which version it was given last.
class ConstantPolicy : public WorkerPolicy {
 public:
  [[nodiscard]] std::size_t extras() const noexcept override { return 1; }
  std::uint64_t act(std::size_t /*buffer*/, std::size_t /*rows*/,
                    std::span<const std::byte> /*observations*/, std::span<std::byte> actions,
                    std::span<float> extras) override {
    std::ranges::fill(elements_of<std::int64_t>(actions), 1);
    std::iota(extras.begin(), extras.end(), 1.0F);
    return version;
  }
  void update(Bytes /*weights*/, std::uint64_t of) override { version = of; }

  std::uint64_t version = 0;
};

}  // namespace batchrpc::test
