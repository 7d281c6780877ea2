#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

/// A checkpoint cannot be written, or read, or is of another training: `what()` names the file.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A checkpoint is not as it was written.
class DamagedCheckpoint : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// A file whose last eight bytes are a checksum of all before. It is read in the same pieces in
/// which it was written: the checksum, like FNV-1a but of words, is of the pieces. All functions
/// throw CheckpointError with the path and the system's reason, and DamagedCheckpoint where bytes
/// are missing or other ones. Not thread safe.
class CheckedFile {
 public:
  /// `flags` as those of open(2).
  CheckedFile(const std::string& path, int flags);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;
  CheckedFile& operator=(const CheckedFile&) = delete;

  void write(const void* data, std::size_t size);
  void read(void* data, std::size_t size);
  void write_text(const std::string& text) { write(text.data(), text.size()); }
  /// `size` is in bytes.
  std::string read_text(std::int64_t size);
  void write_checksum();
  void require_checksum();

  /// Bytes, those of the checksum included.
  [[nodiscard]] std::int64_t size() const;
  /// Returns when all is on the disk.
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

/// Has a file written beside `path`, with its checksum, and puts it in the place of `path` once it
/// is on the disk. Throws CheckpointError, or what `write` does; what was there before then stays.
void replace_file(const std::string& path, const std::function<void(CheckedFile&)>& write);

}  // namespace batchrpc_examples
