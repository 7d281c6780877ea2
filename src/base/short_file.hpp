#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace batchrpc {

/// The most bytes of a file with settings, such as a list of names or certificates.
inline constexpr std::uintmax_t kMostOfShortFile = std::uintmax_t{1} << 20;

/// Whether the path leads to a file that can be read at once: not to a FIFO or a device, which
/// would block the reader, and not to one of over kMostOfShortFile bytes.
[[nodiscard]] inline bool is_short_file(const std::string& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  return is_file && std::filesystem::file_size(path, error) <= kMostOfShortFile && !error;
}

}  // namespace batchrpc
