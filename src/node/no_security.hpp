#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/security.hpp"

namespace batchrpc {

/// The security of a node whose library was built without TLS: it refuses TCP.
class NoSecurity final : public StreamSecurity {
 public:
  [[nodiscard]] std::string refusal(bool /*beyond_this_host*/) const override {
    return "TCP needs TLS, without which anyone could connect, and this build of batchrpc has none "
           "(it was built without OpenSSL). Use Unix sockets, build it with BATCHRPC_TLS=ON, or "
           "set "
           "NodeOptions::security.insecure = true on a host or network that you trust entirely";
  }
  void connect(std::unique_ptr<Stream> /*stream*/, TimePoint /*deadline*/,
               ConnectHandler handler) override {
    handler(nullptr, std::make_error_code(std::errc::permission_denied));
  }
  void accept(std::unique_ptr<Stream> /*stream*/, AcceptHandler /*handler*/) override {}
};

/// Returns it, or null if the options are `insecure`. Throws InvalidArgument if they have a token
/// or certificates.
[[nodiscard]] inline std::shared_ptr<StreamSecurity> no_security(const SecurityOptions& options) {
  if (options.insecure) return nullptr;
  if (!options.token_file.empty() || !options.certificate.empty()) {
    throw InvalidArgument(
        "NodeOptions::security has a token or a certificate, but this build of batchrpc has no TLS "
        "(it was built without OpenSSL); build it with BATCHRPC_TLS=ON");
  }
  return std::make_shared<NoSecurity>();
}

}  // namespace batchrpc
