#include "node/join_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/replace_file.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

// Keeps other roots out of the folder for a moment, where it can be locked.
int lock_folder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) (void)::flock(fd, LOCK_EX | LOCK_NB);
  return fd;
}

// Opens the file and locks it. Returns -1 if it cannot be opened. A file system may have no locks.
int locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  ::close(fd);
  throw JoinFailed("another root, which is still running, has written the join file " + path +
                   "; give each group a file of its own (a child that the root has forked counts, "
                   "too)");
}

// Returns the file when it is written and locked.
int written(const std::string& path, const std::string& address) {
  constexpr mode_t kOwnerOnly = 0600;
  const detail::OwnedFd folder(lock_folder(path));
  const detail::OwnedFd of_other_root(locked(path));
  if (const std::error_code error = replace_file(path, address + '\n', kOwnerOnly)) {
    throw JoinFailed("the join file " + path + " cannot be written (" + error.message() +
                     "); choose another path");
  }
  return locked(path);
}

}  // namespace

std::string read_join_file(const std::string& path) {
  std::array<char, 1024> start{};  // an address is shorter
  const detail::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  const ssize_t size = ::read(file.get(), start.data(), start.size());
  const std::string_view text(start.data(), static_cast<std::size_t>(std::max(size, ssize_t{0})));
  return std::string(text.substr(0, text.find('\n')));
}

JoinFile::JoinFile(const std::string& path, const std::string& address)
    : locked_(written(path, address)) {}

}  // namespace batchrpc
