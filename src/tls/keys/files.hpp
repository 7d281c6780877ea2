#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace batchrpc::keys {

/// The modes of files that only their owner may read, and of those that all may.
inline constexpr mode_t kSecretMode = 0600;
inline constexpr mode_t kPublicMode = 0644;

/// Returns what the file contains. Throws std::runtime_error if it cannot be read, or has more than
/// 64 MiB.
[[nodiscard]] std::string read_file(const std::string& path);

/// Whether anything is at this path, such as a link to nowhere.
[[nodiscard]] bool is_taken(const std::string& path);

/// Writes a file that must not exist yet, as a link neither. Throws std::runtime_error if it does,
/// or if it cannot be written; then nothing is left of it.
void write_new_file(const std::string& path, std::string_view text, mode_t mode);

/// Writes a key and its certificate as new files, PATH.key and PATH.pem. Throws as
/// write_new_file(); then neither is left.
void write_new_pair(const std::string& path, const std::string& certificate,
                    const std::string& key);

}  // namespace batchrpc::keys
