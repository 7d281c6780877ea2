#include "torch_settings/torch_settings.hpp"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace batchrpc_examples {

void use_one_torch_thread() { use_torch_threads(1); }

void use_torch_threads(int count) {
  at::set_num_threads(count);
  // LibTorch does not forward this to an OpenBLAS with its own threads, such as Debian's.
  if (void* symbol = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(symbol)(count);
  }
}

void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kMegabyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMegabyte);
  mallopt(M_TRIM_THRESHOLD, 256 * kMegabyte);
#endif
}

void give_back_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace batchrpc_examples
