#pragma once

#include <cstdint>

namespace tensor_benchmark {

/// The bytes that each process has copied in user space.
struct Copied {
  std::uint64_t client = 0;
  std::uint64_t server = 0;
};

/// Counts the bytes that two processes copy in user space, in memory that they share. It counts
/// every memcpy and memmove of at least `kLeastCopy` bytes called by this program and the libraries
/// linked into it, including batchrpc; the linker redirects these calls (--wrap). LibTorch is a
/// shared library: of its copies it counts the elements that `copy_` writes on the client's side,
/// where views are made dense. Copies by the kernel between a process and a socket are not counted.
///
/// A process may have only one object at a time. While nothing is counted, a call costs reading one
/// flag.
class CopyCounts {
 public:
  static constexpr std::size_t kLeastCopy = 256;

  /// For the client. Throws std::system_error.
  CopyCounts();
  /// For a server, a child process that was given file().
  explicit CopyCounts(int file);
  ~CopyCounts();
  CopyCounts(const CopyCounts&) = delete;
  CopyCounts& operator=(const CopyCounts&) = delete;

  /// The descriptor of the shared memory, which children inherit.
  [[nodiscard]] int file() const { return file_; }

  /// False if batchrpc is a shared library, whose copies cannot be seen.
  [[nodiscard]] static bool possible();

  /// Counts copies from now on, starting at 0, until end(). Call it in the client.
  void begin();
  Copied end();

 private:
  struct Shared;

  void map();

  int file_;
  Shared* shared_ = nullptr;
  std::uint64_t torch_callback_ = 0;
};

}  // namespace tensor_benchmark
