#include "common/checked_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace batchrpc_examples {

CheckedFile::CheckedFile(const std::string& path, int flags)
    : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail("cannot open");
}

CheckedFile::~CheckedFile() { ::close(descriptor_); }

void CheckedFile::fail(const char* what) const {
  throw CheckpointError(path_ + ": " + what + ": " + std::strerror(errno));
}

void CheckedFile::damaged(const std::string& how) const {
  throw DamagedCheckpoint(path_ + ": " + how);
}

void CheckedFile::add(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    std::uint64_t word = 0;
    const std::size_t part = std::min(size, sizeof word);
    std::memcpy(&word, bytes, part);
    checksum_ = (checksum_ ^ word) * 0x100000001b3;
    checksum_ ^= checksum_ >> 32;
    bytes += part;
    size -= part;
  }
}

void CheckedFile::write(const void* data, std::size_t size) {
  add(data, size);
  const auto* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write");
    from += written;
    size -= static_cast<std::size_t>(written);
  }
}

void CheckedFile::read(void* data, std::size_t size) {
  auto* to = static_cast<char*>(data);
  for (std::size_t left = size; left > 0;) {
    const ssize_t got = ::read(descriptor_, to, left);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) damaged(std::string("cannot read: ") + std::strerror(errno));
    if (got == 0) damaged("is cut off");
    to += got;
    left -= static_cast<std::size_t>(got);
  }
  add(data, size);
}

std::string CheckedFile::read_text(std::int64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  read(text.data(), text.size());
  return text;
}

void CheckedFile::write_checksum() {
  const std::uint64_t value = checksum_;
  write(&value, sizeof value);
}

void CheckedFile::require_checksum() {
  const std::uint64_t expected = checksum_;
  std::uint64_t value = 0;
  read(&value, sizeof value);
  if (value != expected) damaged("is damaged: its checksum does not match");
}

std::int64_t CheckedFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail("cannot read");
  return status.st_size;
}

void CheckedFile::sync() const {
  if (::fsync(descriptor_) != 0) fail("cannot write");
}

void replace_file(const std::string& path, const std::function<void(CheckedFile&)>& write) {
  const std::string fresh = path + ".new";
  try {
    {
      CheckedFile file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
      write(file);
      file.write_checksum();
      file.sync();
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) {
      throw CheckpointError(path + ": cannot be replaced: " + std::strerror(errno));
    }
  } catch (...) {
    ::unlink(fresh.c_str());
    throw;
  }
  const auto folder = std::filesystem::absolute(path).parent_path();
  CheckedFile(folder.string(), O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace batchrpc_examples
