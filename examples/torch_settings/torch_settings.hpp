#pragma once

namespace batchrpc_examples {

/// Makes LibTorch and its BLAS use only the calling thread, for the whole process. With a small
/// network, or many processes, more threads only slow each other down. With one thread the same
/// seed gives the same bits.
void use_one_torch_thread();

/// Makes LibTorch and its BLAS use `count` threads.
void use_torch_threads(int count);

/// Makes the process keep freed memory instead of returning it to the system. Each update frees
/// some megabytes and needs them again in the next, and fresh pages would take longer than the
/// update.
void keep_freed_memory();

/// Returns the memory that the process has freed so far.
void give_back_freed_memory();

}  // namespace batchrpc_examples
