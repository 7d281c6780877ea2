#pragma once

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc {

/// The guarantee for a call that ends in an error of this code, if nothing more is known.
[[nodiscard]] Guarantee guarantee_of(ErrorCode code) noexcept;

/// Attaches the diagnostics to `error`, which no other thread has yet. If they name no guarantee,
/// sets the one of the error's code. Does nothing if the exception is no Error.
void report_diagnostics(const std::exception_ptr& error,
                        std::shared_ptr<CallDiagnostics> diagnostics) noexcept;

/// The same for a call that is refused at once.
void report_refusal(Error& error, std::string_view function, std::string_view peer, TimePoint now,
                    Guarantee guarantee = Guarantee::none);

/// Returns a text such as "add (3 calls)" for each name and count.
[[nodiscard]] std::vector<std::string> count_texts(
    const std::map<std::string, std::size_t>& counts);

}  // namespace batchrpc
