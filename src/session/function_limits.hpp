#pragma once

#include <cstddef>

namespace batchrpc {

/// How long the name and the signature of a function may be, in bytes.
inline constexpr std::size_t kMaxName = 4096;
inline constexpr std::size_t kMaxSignature = std::size_t{64} * 1024;
/// How many functions one side of a session may define for its calls, and how many bytes their
/// names and signatures may have together.
inline constexpr std::size_t kMaxFunctions = 65536;
inline constexpr std::size_t kMaxDefinitions = std::size_t{16} << 20;

}  // namespace batchrpc
