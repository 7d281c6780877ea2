#pragma once

#include <cstddef>

namespace batchrpc {

/// The longest name and signature of a function, in bytes.
inline constexpr std::size_t kMaxName = 4096;
inline constexpr std::size_t kMaxSignature = std::size_t{64} * 1024;
/// The most functions that one side of a session may define for its calls, and the most bytes of
/// their names and signatures together.
inline constexpr std::size_t kMaxFunctions = 65536;
inline constexpr std::size_t kMaxDefinitions = std::size_t{16} << 20;

}  // namespace batchrpc
