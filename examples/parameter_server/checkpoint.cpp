#include "parameter_server/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace batchrpc_examples {
namespace {

constexpr char kMagic[8] = {'b', 'r', 'p', 'c', 'k', 'p', 't', '1'};

struct Header {
  char magic[8]{};
  std::int64_t iterations = 0;
  std::int64_t elements = 0;
  std::int64_t has_velocity = 0;
  std::int64_t settings_size = 0;
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

at::Tensor read_tensor(const File& file, std::int64_t elements) {
  at::Tensor tensor = at::empty({elements});
  file.read(tensor.data_ptr(), tensor.nbytes());
  return tensor;
}

void write_new(const std::string& path, const std::string& settings, const Checkpoint& checkpoint) {
  Header header{.iterations = checkpoint.iterations,
                .elements = checkpoint.values.numel(),
                .has_velocity = checkpoint.velocity.defined() ? 1 : 0,
                .settings_size = static_cast<std::int64_t>(settings.size())};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(&header, sizeof header);
  file.write(settings.data(), settings.size());
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
  } catch (const CheckpointError&) {
    ::unlink(fresh.c_str());
    throw;
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    throw CheckpointError(path + ": cannot be replaced: " + std::strerror(errno));
  }
  const auto folder = std::filesystem::absolute(path).parent_path();
  File(folder.string(), O_RDONLY | O_DIRECTORY).sync();
}

std::optional<Checkpoint> read_checkpoint(const std::string& path, const std::string& settings,
                                          std::int64_t elements, std::int64_t parameters) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const File file(path, O_RDONLY);
  Header header;
  file.read(&header, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.settings_size < 0 ||
      header.settings_size > 4096) {
    throw CheckpointError(path + ": is no checkpoint of this program");
  }
  std::string written(static_cast<std::size_t>(header.settings_size), '\0');
  file.read(written.data(), written.size());
  if (written != settings || header.elements != elements) {
    throw CheckpointError(path + ": is of another training: " + written + "; this one is " +
                          settings);
  }
  Checkpoint checkpoint;
  checkpoint.iterations = header.iterations;
  checkpoint.values = read_tensor(file, elements);
  if (header.has_velocity != 0) checkpoint.velocity = read_tensor(file, parameters);
  return checkpoint;
}

}  // namespace batchrpc_examples
