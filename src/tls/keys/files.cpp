#include "tls/keys/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "base/write_all.hpp"

namespace batchrpc::keys {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw std::runtime_error(path + ' ' + what + ": " + std::generic_category().message(error));
}

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~OpenFile() { close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Returns 0, or the error.
  int close() noexcept {
    const int fd = fd_;
    fd_ = -1;
    return fd >= 0 && ::close(fd) != 0 ? errno : 0;
  }

 private:
  int fd_;
};

}  // namespace

std::string read_file(const std::string& path) {
  const OpenFile file(path, O_RDONLY);
  if (!file.is_open()) fail(path, "cannot be read", errno);
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::read(file.fd(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot be read", errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kMostBytes) throw std::runtime_error(path + " has more than 64 MiB");
  }
}

bool is_taken(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

void write_new_file(const std::string& path, std::string_view text, mode_t mode) {
  OpenFile file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  if (!file.is_open() && errno == EEXIST) {
    throw std::runtime_error(path +
                             " exists already, and is left as it is; remove it first, or choose "
                             "another name");
  }
  if (!file.is_open()) fail(path, "cannot be written", errno);
  int error = write_all(file.fd(), text);
  if (const int at_end = file.close(); error == 0) error = at_end;
  if (error == 0) return;
  ::unlink(path.c_str());
  fail(path, "cannot be written", error);
}

void write_new_pair(const std::string& path, const std::string& certificate,
                    const std::string& key) {
  const std::string key_path = path + ".key";
  write_new_file(key_path, key, kSecretMode);
  try {
    write_new_file(path + ".pem", certificate, kPublicMode);
  } catch (...) {
    ::unlink(key_path.c_str());
    throw;
  }
}

}  // namespace batchrpc::keys
