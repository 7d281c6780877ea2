#pragma once

namespace batchrpc {

/// Knows whether it is the copy in a forked child, by a page that the kernel wipes there. Costs a
/// read, and no handler of the whole process.
class ForkMark {
 public:
  ForkMark() noexcept;
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  [[nodiscard]] bool is_forked_copy() const noexcept {
    return page_ != nullptr && *static_cast<const volatile int*>(page_) == 0;
  }

 private:
  void* page_ = nullptr;  // null where the kernel cannot do it
};

}  // namespace batchrpc
