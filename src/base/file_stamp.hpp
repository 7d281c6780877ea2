#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace batchrpc {

/// Identifies one version of a file: a file that is written or replaced gets another stamp. The
/// stamp of a file that is not there equals a new one.
struct FileStamp {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  std::int64_t size = -1;
  std::uint64_t file = 0;  // its inode
  bool operator==(const FileStamp&) const = default;

  [[nodiscard]] static FileStamp of(const std::string& path) noexcept {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) return {};
    return {.seconds = found.st_mtim.tv_sec,
            .nanoseconds = found.st_mtim.tv_nsec,
            .size = found.st_size,
            .file = found.st_ino};
  }
};

}  // namespace batchrpc
