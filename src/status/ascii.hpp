#pragma once

namespace batchrpc::status {

/// The letter in lower case, whatever the locale.
constexpr char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace batchrpc::status
