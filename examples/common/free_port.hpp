#pragma once

#include <cstdint>

namespace batchrpc_examples {

/// Returns a TCP port on which nothing listens on loopback at this moment. Another process may take
/// it before the caller does, which is unlikely, since the kernel cycles through all ports. Throws
/// `std::system_error` if there is none.
std::uint16_t free_port();

}  // namespace batchrpc_examples
