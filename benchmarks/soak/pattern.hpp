#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "batchrpc/base/bytes.hpp"

namespace soak {

inline constexpr std::size_t kPatternSize = std::size_t{4} << 20;

/// Bytes that every process has. A payload is a part of them, so that each side knows what to
/// expect.
inline const batchrpc::Bytes& pattern() {
  static const batchrpc::Bytes kBytes = [] {
    batchrpc::Bytes bytes = batchrpc::Bytes::allocate(kPatternSize);
    std::uint64_t state = 1;
    for (std::size_t at = 0; at < kPatternSize; at += sizeof state) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(bytes.mutable_data() + at, &state, sizeof state);
    }
    return bytes;
  }();
  return kBytes;
}

inline batchrpc::Bytes part_of_pattern(std::size_t at, std::size_t size) {
  return {pattern().owner(), pattern().span().subspan(at, size)};
}

inline bool is_part_of_pattern(const batchrpc::Bytes& bytes, std::size_t at, std::size_t size) {
  return bytes.size() == size &&
         (size == 0 || std::memcmp(bytes.data(), pattern().data() + at, size) == 0);
}

}  // namespace soak
