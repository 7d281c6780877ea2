#pragma once

#include <string>

namespace batchrpc {

/// Detects whether it is the copy in a forked child, by a page that the kernel wipes there. The
/// check costs one read.
class ForkMark {
 public:
  ForkMark() noexcept;
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  [[nodiscard]] bool is_forked_copy() const noexcept {
    return page_ != nullptr && *static_cast<const volatile int*>(page_) == 0;
  }

  /// Throws ShutDown in a forked child. `node` is for the message.
  void refuse_forked_copy(const std::string& node) const {
    if (is_forked_copy()) refuse(node);
  }

 private:
  [[noreturn]] static void refuse(const std::string& node);

  void* page_ = nullptr;  // null if the kernel does not support it
};

}  // namespace batchrpc
