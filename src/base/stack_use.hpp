#pragma once

namespace batchrpc {

/// Whether the calling thread has used half of its stack. Then nothing more should run on top of
/// it. False if the stack's bounds are unknown, as on a fiber of the program.
[[nodiscard]] bool is_half_of_stack_used() noexcept;

}  // namespace batchrpc
