#pragma once

#include <cstdint>

namespace tensor_benchmark {

/// Bytes that each process has copied in user space.
struct Copied {
  std::uint64_t client = 0;
  std::uint64_t server = 0;
};

/// Counts what two processes copy in user space, in memory that they share. What is counted is
/// every memcpy and memmove of `kLeastCopy` bytes or more that this program and the libraries
/// linked into it call, batchrpc among them: the linker leads these calls past us (--wrap). Of
/// LibTorch, which is a shared library, the elements that its `copy_` writes, on the client's side:
/// that is where views are made dense. What the kernel copies between a process and a socket is not
/// counted.
///
/// One object in a process at a time. Calls made while nobody counts cost a look at a flag.
class CopyCounts {
 public:
  static constexpr std::size_t kLeastCopy = 256;

  /// Of the client. Throws std::system_error.
  CopyCounts();
  /// Of a server, its child, that was told file().
  explicit CopyCounts(int file);
  ~CopyCounts();
  CopyCounts(const CopyCounts&) = delete;
  CopyCounts& operator=(const CopyCounts&) = delete;

  /// Descriptor of the shared memory, which children inherit.
  [[nodiscard]] int file() const { return file_; }

  /// False where batchrpc is a shared library, whose copies are not seen.
  [[nodiscard]] static bool possible();

  /// From now on copies are counted, from 0; until end(). Of the client.
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
