#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "fabrics.hpp"
#include "tls/credentials.hpp"
#include "tls/tls_security.hpp"

namespace batchrpc::test {

/// Security by a token.
inline std::shared_ptr<tls::TlsSecurity> token_security(const std::shared_ptr<Loop>& loop,
                                                        char letter = 't', const Log& log = Log(),
                                                        const std::string& job = "job") {
  return std::make_shared<tls::TlsSecurity>(tls::TlsSecurity::Parts{
      .loop = loop, .log = log, .make_credentials = [=] {
        return tls::token_credentials(std::string(64, letter), "the test's token",
                                      {.name = "node", .job = job});
      }});
}

using MakeSecurity =
    std::function<std::shared_ptr<StreamSecurity>(const std::shared_ptr<Loop>& loop)>;

/// TCP on loopback, secured by `server` and `client`.
inline Fabric tls_fabric(
    const MakeSecurity& server = [](const auto& loop) { return token_security(loop); },
    const MakeSecurity& client = [](const auto& loop) { return token_security(loop); }) {
  Fabric fabric;
  auto server_loop = SocketLoop::start();
  auto client_loop = SocketLoop::start();
  fabric.server = std::make_shared<TcpTransport>(server_loop, Log(), server(server_loop));
  fabric.client = std::make_shared<TcpTransport>(client_loop, Log(), client(client_loop));
  fabric.server_loop = std::move(server_loop);
  fabric.client_loop = std::move(client_loop);
  fabric.address = [] { return free_address("tcp"); };
  return fabric;
}

}  // namespace batchrpc::test
