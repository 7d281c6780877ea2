#include "node/fork_mark.hpp"

#include <sys/mman.h>

#include <cstddef>

#include "batchrpc/base/error.hpp"

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

void ForkMark::refuse(const std::string& node) {
  throw ShutDown(
      "node " + node +
      " was made before fork() and does not work in the child; make a node after forking");
}

ForkMark::~ForkMark() {
  if (page_ != nullptr && !is_forked_copy()) ::munmap(page_, kPage);
}

}  // namespace batchrpc
