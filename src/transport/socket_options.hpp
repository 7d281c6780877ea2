#pragma once

namespace batchrpc::detail {

/// Sets the options of a connected socket. TCP sends data at once and buffers little unsent data;
/// between two ends of one address it does not use BBR, if the system has it. A Unix socket takes
/// large chunks. Options that the system does not allow are left unchanged. See
/// docs/decisions/0023.
void set_options(int fd) noexcept;

}  // namespace batchrpc::detail
