#include "base/replace_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/random_bits.hpp"

namespace batchrpc {
namespace {

std::string draft_beside(const std::string& path) {
  return path + ".tmp." + std::to_string(RandomBits()());
}

bool write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::error_code replace_file(const std::string& path, std::string_view text, mode_t mode) {
  const auto error = [] { return std::error_code(errno, std::generic_category()); };
  const std::string draft = draft_beside(path);
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return error();
  std::error_code failure;
  if (!write_all(fd, text)) failure = error();
  if (::close(fd) != 0 && !failure) failure = error();
  if (!failure && std::rename(draft.c_str(), path.c_str()) != 0) failure = error();
  if (failure) ::unlink(draft.c_str());
  return failure;
}

}  // namespace batchrpc
