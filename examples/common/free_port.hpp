#pragma once

#include <cstdint>

namespace batchrpc_examples {

/// A TCP port that nobody listens on at loopback at this moment. Somebody may take it before the
/// caller does, which is unlikely, as the kernel goes round all of them.
/// Throws `std::system_error` when there is none.
std::uint16_t free_port();

}  // namespace batchrpc_examples
