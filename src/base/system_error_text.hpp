#pragma once

#include <cstddef>
#include <string>
#include <system_error>

namespace batchrpc {

/// The most descriptors that this process may have (ulimit -n); 2^30 stands for no limit.
[[nodiscard]] std::size_t most_descriptors() noexcept;

/// The text of an error of the system. If descriptors have run out, it names the limit and says
/// what to do.
[[nodiscard]] std::string system_error_text(const std::error_code& error);

/// Throws Overloaded if a call of the system found no descriptor left, else std::system_error. For
/// what an event loop needs to start.
[[noreturn]] void throw_system_error(int error, const std::string& call);

}  // namespace batchrpc
