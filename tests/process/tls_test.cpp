#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "batchrpc/batchrpc.hpp"
#include "child.hpp"

// Processes whose connections are secured, as people start them.

#ifdef BATCHRPC_HAS_TLS

namespace batchrpc {
namespace tls_test {

using namespace std::chrono_literals;
using test::Child;

/// A folder with two tokens, by batchrpc-keys.
struct Tokens {
  Tokens() {
    std::filesystem::create_directory(folder);
    for (const std::string& file : {ours, others}) {
      Child keys({"batchrpc-keys", "token", file});
      CHECK(keys.wait() == 0);
    }
  }
  ~Tokens() { std::filesystem::remove_all(folder); }
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("batchrpc-tls-test-" + std::to_string(std::random_device{}()));
  const std::string ours = folder / "ours";
  const std::string others = folder / "others";
};

/// A server whose environment has the token file.
Child serve(const std::string& token_file, const std::string& address) {
  ::setenv("BATCHRPC_TOKEN_FILE", token_file.c_str(), 1);
  Child server({"serve", address});
  ::unsetenv("BATCHRPC_TOKEN_FILE");
  return server;
}

NodeOptions client(const std::string& address, const std::string& token_file) {
  NodeOptions options;
  options.name = "client";
  options.rank = -1;
  options.join = address;
  options.transports = {tcp_transport()};
  options.join_timeout = 500ms;
  options.security.token_file = token_file;
  return options;
}

TEST_CASE("a process calls one with the same token, and none with another token or without one",
          "[tls]") {
  const Tokens tokens;
  Child server = serve(tokens.ours, "tcp://127.0.0.1:0");
  const std::string address = server.line("serving at ");
  {
    const Node node(client(address, tokens.ours));
    CHECK(node.call<int(int, int)>("server", "add", 1, 2).get() == 3);
    CHECK(node.peers().at(0).identity == "token");
  }
  CHECK_THROWS_WITH(Node(client(address, tokens.others)),
                    Catch::Contains("refuses this node's token"));
  CHECK_THROWS_WITH(Node(client(address, "")), Catch::Contains("refuses this node's token"));
  CHECK(Node(client(address, tokens.ours)).peers().size() == 1);
}

TEST_CASE("a process without a token refuses to listen for other hosts, and says what to do",
          "[tls]") {
  Child server({"serve", "tcp://0.0.0.0:0"});
  CHECK(server.wait() == 2);
  CHECK_THAT(server.output(), Catch::Contains("batchrpc-keys token FILE") &&
                                  Catch::Contains("NodeOptions::security.certificate") &&
                                  Catch::Contains("NodeOptions::security.insecure"));
}

}  // namespace tls_test
}  // namespace batchrpc

#endif
