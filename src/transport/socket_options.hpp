#pragma once

namespace batchrpc::detail {

/// Sets the options of a connected socket: TCP sends at once what it is given, takes little that it
/// cannot send yet, and between two ends of one address leaves BBR, where the system has it; a Unix
/// socket takes large chunks. Whatever the system does not allow is left as it is. See
/// docs/decisions/0023.
void set_options(int fd) noexcept;

}  // namespace batchrpc::detail
