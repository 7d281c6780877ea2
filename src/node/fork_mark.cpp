#include "node/fork_mark.hpp"

#include <sys/mman.h>

#include <cstddef>

namespace batchrpc {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

ForkMark::ForkMark() noexcept {
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, kPage, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kPage);
    return;
  }
  *static_cast<volatile int*>(page) = 1;
  page_ = page;
}

ForkMark::~ForkMark() {
  if (page_ != nullptr && !is_forked_copy()) ::munmap(page_, kPage);
}

}  // namespace batchrpc
