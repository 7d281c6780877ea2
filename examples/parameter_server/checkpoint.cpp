#include "parameter_server/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace batchrpc_examples {
namespace {

constexpr char kMagic[8] = {'b', 'r', 'p', 'c', 'k', 'p', 't', '2'};

struct Header {
  char magic[8]{};
  std::int64_t iterations = 0;
  std::int64_t elements = 0;
  std::int64_t has_velocity = 0;
  std::int64_t settings_size = 0;
  std::int64_t history_size = 0;
};
constexpr std::int64_t kLongestText = 4096;

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
  void write(const void* data, std::size_t size) const {
    const auto* from = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(descriptor_, from, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("cannot write");
      from += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  void read(void* data, std::size_t size) const {
    auto* to = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = ::read(descriptor_, to, size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("cannot read");
      if (got == 0) throw CheckpointError(path_ + ": is cut off");
      to += got;
      size -= static_cast<std::size_t>(got);
    }
  }
  void require_end() const {
    char more = 0;
    if (::read(descriptor_, &more, 1) != 0) {
      throw CheckpointError(path_ + ": is longer than it should be");
    }
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
};

void write_tensor(const File& file, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  file.write(dense.data_ptr(), dense.nbytes());
}

std::string read_text(const File& file, std::int64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), text.size());
  return text;
}

at::Tensor read_tensor(const File& file, std::int64_t elements) {
  at::Tensor tensor = at::empty({elements});
  file.read(tensor.data_ptr(), tensor.nbytes());
  return tensor;
}

void write_new(const std::string& path, const std::string& settings, const Checkpoint& checkpoint) {
  Header header{.iterations = checkpoint.iterations,
                .elements = checkpoint.values.numel(),
                .has_velocity = checkpoint.velocity.defined() ? 1 : 0,
                .settings_size = static_cast<std::int64_t>(settings.size()),
                .history_size = static_cast<std::int64_t>(checkpoint.history.size())};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(&header, sizeof header);
  file.write(settings.data(), settings.size());
  file.write(checkpoint.history.data(), checkpoint.history.size());
  write_tensor(file, checkpoint.values);
  if (checkpoint.velocity.defined()) write_tensor(file, checkpoint.velocity);
  file.sync();
}

}  // namespace

void write_checkpoint(const std::string& path, const std::string& settings,
                      const Checkpoint& checkpoint) {
  const std::string fresh = path + ".new";
  try {
    write_new(fresh, settings, checkpoint);
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

Checkpoint read_checkpoint(const std::string& path, const std::string& settings,
                           std::int64_t elements, std::int64_t parameters) {
  const File file(path, O_RDONLY);
  Header header;
  file.read(&header, sizeof header);
  const auto is_text = [](std::int64_t size) { return size >= 0 && size <= kLongestText; };
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || !is_text(header.settings_size) ||
      !is_text(header.history_size)) {
    throw CheckpointError(path + ": is no checkpoint of this program");
  }
  const std::string written = read_text(file, header.settings_size);
  if (written != settings || header.elements != elements) {
    throw CheckpointError(path + ": is of another training: " + written + "; this one is " +
                          settings);
  }
  Checkpoint checkpoint;
  checkpoint.iterations = header.iterations;
  checkpoint.history = read_text(file, header.history_size);
  checkpoint.values = read_tensor(file, elements);
  if (header.has_velocity != 0) checkpoint.velocity = read_tensor(file, parameters);
  file.require_end();
  return checkpoint;
}

}  // namespace batchrpc_examples
