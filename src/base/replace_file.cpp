#include "base/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/random_bits.hpp"
#include "base/write_all.hpp"

namespace batchrpc {
namespace {

std::string draft_beside(const std::string& path) {
  return path + ".tmp." + std::to_string(RandomBits()());
}

}  // namespace

std::error_code replace_file(const std::string& path, std::string_view text, mode_t mode) {
  const auto error = [] { return std::error_code(errno, std::generic_category()); };
  struct stat found {};
  const bool exists = ::stat(path.c_str(), &found) == 0;
  if (exists && !S_ISREG(found.st_mode)) return std::make_error_code(std::errc::file_exists);
  const std::string draft = draft_beside(path);
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return error();
  std::error_code failure;
  if (const int why = write_all(fd, text); why != 0) failure = {why, std::generic_category()};
  if (::close(fd) != 0 && !failure) failure = error();
  if (!failure && std::rename(draft.c_str(), path.c_str()) != 0) failure = error();
  if (failure) ::unlink(draft.c_str());
  return failure;
}

}  // namespace batchrpc
