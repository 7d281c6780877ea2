#pragma once

namespace batchrpc_examples {

/// Makes LibTorch and its BLAS work on the calling thread only, for the whole process. Where
/// each process has a small network or others beside it, more threads only get in the way, and with
/// one the same seed gives the same bits.
void use_one_torch_thread();

/// Makes LibTorch and its BLAS work on so many threads.
void use_torch_threads(int count);

/// Has the process keep the memory that it frees instead of giving it back to the system: each
/// update frees some megabytes and needs them again in the next, and fresh pages cost more than the
/// update.
void keep_freed_memory();

/// Gives back what the process has freed so far.
void give_back_freed_memory();

}  // namespace batchrpc_examples
