#pragma once

#include <string>
#include <string_view>

namespace batchrpc::status {

/// page.html, as it was when this was built. Has `kNonce` where scripts and styles say what lets
/// them run.
[[nodiscard]] std::string_view page_html() noexcept;
inline constexpr std::string_view kNonce = "NONCE-OF-THIS-ANSWER";

/// The page with that in these places.
[[nodiscard]] std::string page_with_nonce(std::string_view nonce);

}  // namespace batchrpc::status
