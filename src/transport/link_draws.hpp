#pragma once

#include <cstdint>
#include <random>

#include "batchrpc/transport/inproc.hpp"

namespace batchrpc::detail {

/// What LinkOptions leave to chance. A link without chance draws nothing.

/// What comes on top of the latency of one write.
[[nodiscard]] Duration draw_jitter(const LinkOptions& options, std::mt19937_64& random);

/// After how many bytes `break_every` breaks a connection, at least one; the largest number: never.
[[nodiscard]] std::uint64_t draw_break(const LinkOptions& options, std::mt19937_64& random);

/// How many of `bytes` that were under way outlive a break: all, none, or some.
[[nodiscard]] std::size_t draw_rest(std::size_t bytes, std::mt19937_64& random);

/// How long `bytes` take at a rate in bytes per second; zero at no limit.
[[nodiscard]] Duration time_for(std::uint64_t bytes, std::uint64_t rate) noexcept;

}  // namespace batchrpc::detail
