#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace batchrpc::test {

/// Lets this process have only a few descriptors while it lives. Those that it has stay.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{std::min(most, before_.rlim_cur), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// Lets this process open no more descriptors while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0))
      hoard_.push_back(fd);
  }
  ~NoDescriptors() {
    for (const int fd : hoard_)
      ::close(fd);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  FewDescriptors few_{256};
  std::vector<int> hoard_;
};

}  // namespace batchrpc::test
