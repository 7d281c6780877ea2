#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

/// A checkpoint cannot be read or written, or belongs to another training. `what()` names the file.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A checkpoint's content differs from what was written.
class DamagedCheckpoint : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// A file whose last eight bytes are a checksum of the rest. Read it in the same pieces in which it
/// was written, because the checksum (like FNV-1a, but of words) covers pieces. All functions throw
/// CheckpointError with the path and the system's reason, and DamagedCheckpoint if bytes are
/// missing or wrong. Not thread-safe.
class CheckedFile {
 public:
  /// `flags` are those of open(2).
  CheckedFile(const std::string& path, int flags);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;
  CheckedFile& operator=(const CheckedFile&) = delete;

  void write(const void* data, std::size_t size);
  void read(void* data, std::size_t size);
  void write_text(const std::string& text) { write(text.data(), text.size()); }
  /// Reads `size` bytes.
  std::string read_text(std::int64_t size);
  void write_checksum();
  void require_checksum();

  /// The size in bytes, including the checksum.
  [[nodiscard]] std::int64_t size() const;
  /// Returns when all data is on the disk.
  void sync() const;
  /// Throws DamagedCheckpoint.
  [[noreturn]] void damaged(const std::string& how) const;

 private:
  [[noreturn]] void fail(const char* what) const;
  void add(const void* data, std::size_t size);

  const std::string path_;
  int descriptor_;
  std::uint64_t checksum_ = 0xcbf29ce484222325;
};

/// Calls `write` for a new file next to `path`, adds the checksum, and replaces `path` once the
/// file is on the disk. If that fails, throws CheckpointError or the exception of `write`, and the
/// old file stays.
void replace_file(const std::string& path, const std::function<void(CheckedFile&)>& write);

}  // namespace batchrpc_examples
