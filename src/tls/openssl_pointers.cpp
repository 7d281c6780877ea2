#include "tls/openssl_pointers.hpp"

#include <openssl/err.h>

#include <system_error>

namespace batchrpc::tls {

std::string take_openssl_error() {
  const unsigned long code = ERR_get_error();  // NOLINT(google-runtime-int): OpenSSL's type
  ERR_clear_error();
  if (code == 0) return {};
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "OpenSSL's error " + std::to_string(code);
}

}  // namespace batchrpc::tls
