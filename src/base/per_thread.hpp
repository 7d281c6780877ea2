#pragma once

#include <utility>

namespace batchrpc::detail {

/// The calling thread's own T. Unlike a plain thread_local, it can still be used after the thread's
/// objects have been destroyed, for example by destructors of static objects at the end of the
/// program. In that case it is created again and never destroyed.
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
