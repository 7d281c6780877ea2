#pragma once

#include <utility>

namespace batchrpc::detail {

/// The calling thread's own T. Unlike a plain thread_local it may still be used when those of the
/// thread have been destroyed, as destructors of static objects do at the end of the program: then
/// it is made anew, and left to the end of the process.
template <class T>
T& per_thread() {
  static constinit thread_local T* own = nullptr;
  if (own == nullptr) {
    struct AtThreadEnd {
      ~AtThreadEnd() { delete std::exchange(own, nullptr); }
    };
    thread_local AtThreadEnd at_thread_end;
    own = new T;
    (void)&at_thread_end;
  }
  return *own;
}

}  // namespace batchrpc::detail
