#include "parameter_server/checkpoint.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace batchrpc_examples {
namespace {

constexpr char kMagic[8] = {'b', 'r', 'p', 'c', 'k', 'p', 't', '3'};

struct Header {
  char magic[8]{};
  std::int64_t iterations = 0;
  std::int64_t servers = 0;
  std::int64_t elements = 0;
  std::int64_t velocity_elements = 0;  // 0: none
  std::int64_t settings_size = 0;
  std::int64_t history_size = 0;
};
constexpr std::int64_t kLongestText = 4096;

/// Like FNV-1a, but of words. The pieces are the same when the file is read as when it was written.
class Checksum {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    while (size > 0) {
      std::uint64_t word = 0;
      const std::size_t part = std::min(size, sizeof word);
      std::memcpy(&word, bytes, part);
      value_ = (value_ ^ word) * 0x100000001b3;
      value_ ^= value_ >> 32;
      bytes += part;
      size -= part;
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

class File {
 public:
  File(const std::string& path, int flags)
      : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail("cannot open");
  }
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[noreturn]] void fail(const char* what) const {
    throw CheckpointError(path_ + ": " + what + ": " + std::strerror(errno));
  }
  [[noreturn]] void damaged(const std::string& how) const {
    throw DamagedCheckpoint(path_ + ": " + how);
  }
  void write(const void* data, std::size_t size) {
    checksum_.add(data, size);
    const auto* from = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(descriptor_, from, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("cannot write");
      from += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  void read(void* data, std::size_t size) {
    auto* to = static_cast<char*>(data);
    for (std::size_t left = size; left > 0;) {
      const ssize_t got = ::read(descriptor_, to, left);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) damaged(std::string("cannot read: ") + std::strerror(errno));
      if (got == 0) damaged("is cut off");
      to += got;
      left -= static_cast<std::size_t>(got);
    }
    checksum_.add(data, size);
  }
  void write_checksum() {
    const std::uint64_t value = checksum_.value();
    write(&value, sizeof value);
  }
  void require_checksum() {
    const std::uint64_t expected = checksum_.value();
    std::uint64_t value = 0;
    read(&value, sizeof value);
    if (value != expected) damaged("is damaged: its checksum is another");
  }
  [[nodiscard]] std::int64_t size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail("cannot read");
    return status.st_size;
  }
  void sync() const {
    if (::fsync(descriptor_) != 0) fail("cannot write");
  }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  const std::string path_;
  int descriptor_;
  Checksum checksum_;
};

void write_tensor(File& file, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  file.write(dense.data_ptr(), dense.nbytes());
}

std::string read_text(File& file, std::int64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), text.size());
  return text;
}

at::Tensor read_tensor(File& file, std::int64_t elements) {
  at::Tensor tensor = at::empty({elements});
  file.read(tensor.data_ptr(), tensor.nbytes());
  return tensor;
}

void write_new(const std::string& path, const Checkpoint& checkpoint) {
  const at::Tensor& velocity = checkpoint.velocity;
  Header header{.iterations = checkpoint.iterations,
                .servers = checkpoint.servers,
                .elements = checkpoint.values.numel(),
                .velocity_elements = velocity.defined() ? velocity.numel() : 0,
                .settings_size = static_cast<std::int64_t>(checkpoint.settings.size()),
                .history_size = static_cast<std::int64_t>(checkpoint.history.size())};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(&header, sizeof header);
  file.write(checkpoint.settings.data(), checkpoint.settings.size());
  file.write(checkpoint.history.data(), checkpoint.history.size());
  write_tensor(file, checkpoint.values);
  if (velocity.defined()) write_tensor(file, velocity);
  file.write_checksum();
  file.sync();
}

// Before anything is allocated of the sizes that it names.
void require_whole(const File& file, const Header& header) {
  const auto is_text = [](std::int64_t size) { return size >= 0 && size <= kLongestText; };
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || !is_text(header.settings_size) ||
      !is_text(header.history_size) || header.elements < 0 || header.velocity_elements < 0) {
    file.damaged("is no checkpoint of this program");
  }
  std::int64_t left = file.size() -
                      static_cast<std::int64_t>(sizeof header + sizeof(std::uint64_t)) -
                      header.settings_size - header.history_size;
  for (const std::int64_t elements : {header.elements, header.velocity_elements}) {
    if (left < 0 || elements > left / std::int64_t{sizeof(float)}) file.damaged("is cut off");
    left -= elements * std::int64_t{sizeof(float)};
  }
  if (left > 0) file.damaged("is longer than it should be");
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const std::string fresh = path + ".new";
  try {
    write_new(fresh, checkpoint);
    if (::rename(fresh.c_str(), path.c_str()) != 0) {
      throw CheckpointError(path + ": cannot be replaced: " + std::strerror(errno));
    }
  } catch (const CheckpointError&) {
    ::unlink(fresh.c_str());
    throw;
  }
  const auto folder = std::filesystem::absolute(path).parent_path();
  File(folder.string(), O_RDONLY | O_DIRECTORY).sync();
}

Checkpoint read_checkpoint(const std::string& path) {
  File file(path, O_RDONLY);
  Header header;
  file.read(&header, sizeof header);
  require_whole(file, header);
  Checkpoint checkpoint;
  checkpoint.iterations = header.iterations;
  checkpoint.servers = header.servers;
  checkpoint.settings = read_text(file, header.settings_size);
  checkpoint.history = read_text(file, header.history_size);
  checkpoint.values = read_tensor(file, header.elements);
  if (header.velocity_elements > 0) {
    checkpoint.velocity = read_tensor(file, header.velocity_elements);
  }
  file.require_checksum();
  return checkpoint;
}

}  // namespace batchrpc_examples
