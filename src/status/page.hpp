#pragma once

#include <string>
#include <string_view>

namespace batchrpc::status {

/// page.html, as of the build. It contains `kNonce` in the places where scripts and styles need
/// their nonce.
[[nodiscard]] std::string_view page_html() noexcept;
inline constexpr std::string_view kNonce = "NONCE-OF-THIS-ANSWER";

/// The page with `nonce` in those places.
[[nodiscard]] std::string page_with_nonce(std::string_view nonce);

}  // namespace batchrpc::status
