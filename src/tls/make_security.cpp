#include "tls/make_security.hpp"

#include <cstdlib>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "tls/join_token.hpp"
#include "tls/tls_security.hpp"

namespace batchrpc::tls {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? value : "";
}

void check(const SecurityOptions& options) {
  const bool has_certificate = !options.certificate.empty();
  if (options.insecure && (has_certificate || !options.token_file.empty())) {
    throw InvalidArgument(
        "NodeOptions::security has `insecure` and also a token or a certificate; choose one");
  }
  if (has_certificate && !options.token_file.empty()) {
    throw InvalidArgument(
        "NodeOptions::security has a token_file and a certificate; all nodes of a group use one of "
        "them");
  }
  const bool has_others =
      !options.key.empty() || !options.authority.empty() || !options.revocations.empty();
  if (has_certificate ? options.key.empty() || options.authority.empty() : has_others) {
    throw InvalidArgument(
        "NodeOptions::security needs certificate, key and authority together; revocations may be "
        "added");
  }
}

}  // namespace

std::shared_ptr<StreamSecurity> make_security(const SecurityOptions& options, const Owner& owner,
                                              std::shared_ptr<Loop> loop, const Log& log) {
  check(options);
  if (options.insecure) return nullptr;
  TlsSecurity::Parts parts{.loop = std::move(loop), .log = log};
  std::string file = options.token_file;
  std::string token;
  if (!options.certificate.empty()) {
    parts.can_change = true;
    parts.make_credentials = [made = certificate_credentials(options, owner)] { return made; };
    auto security = std::make_shared<TlsSecurity>(std::move(parts));
    security->watch();
    return security;
  }
  std::string source = "the token in BATCHRPC_TOKEN";
  if (file.empty()) file = variable("BATCHRPC_TOKEN_FILE");
  if (file.empty()) token = variable("BATCHRPC_TOKEN");
  if (!file.empty()) {
    token = read_token_file(file);
    source = "the token file " + file;
  }
  if (!token.empty()) {
    // The context takes a millisecond to make, and not every node connects by TCP.
    (void)derive_join_key(token, owner.job, source);
    parts.make_credentials = [token, source, owner] {
      return token_credentials(token, source, owner);
    };
  } else if (!file.empty()) {
    throw InvalidArgument(source + " is empty; make one by: batchrpc-keys token FILE");
  } else {
    parts.reaches_other_hosts = false;
    try {
      check_token_of_user();
    } catch (const InvalidArgument& error) {  // the node may need no TCP
      log.warning("this node does not use TCP: " + std::string(error.what()));
      parts.refusal = error.what();
    }
    parts.make_credentials = [owner] {
      return token_credentials(token_of_user(), "the token of this user", owner);
    };
  }
  return std::make_shared<TlsSecurity>(std::move(parts));
}

}  // namespace batchrpc::tls
