// Nodes that are secured by NodeOptions::security.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/transport/tcp_transport.hpp"
#include "becomes_true.hpp"
#include "node/real_nodes.hpp"
#include "tls/certificate_files.hpp"
#include "tls/tls_security.hpp"

namespace batchrpc::test {
namespace nodes_test {

using namespace std::chrono_literals;

int twice(int number) { return 2 * number; }

/// Options of a root, over TCP alone.
NodeOptions root_options(const SecurityOptions& security, const std::string& name = "a") {
  NodeOptions options = real_root(name, 1);
  options.transports = {tcp_transport()};
  options.job = "job";
  options.security = security;
  return options;
}

NodeOptions joining_options(const Node& root, const SecurityOptions& security,
                            const std::string& name = "b") {
  NodeOptions options = root_options(security, name);
  options.rank = -1;
  options.join = root.address();
  options.join_timeout = 200ms;
  return options;
}

/// Sets a variable of the environment, or removes it, for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* const former = std::getenv(name)) former_ = former;
    set(value);
  }
  ~Variable() { set(former_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> former_;
};

std::string message_of(NodeOptions options) {
  try {
    const Node node(std::move(options));
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "no error";
}

PeerInfo info_of(const Node& node, const std::string& peer) {
  for (PeerInfo& each : node.peers())
    if (each.name == peer) return each;
  return {};
}

/// The identity of the caller.
std::string who() { return CallContext::current()->caller().identity; }

TEST_CASE("nodes with one token file call each other over TCP", "[threads]") {
  const CertificateFiles files;
  SecurityOptions security;
  security.token_file = files.write("token", tls::make_token());
  Node root(root_options(security));
  root.expose<&twice>();
  root.expose<&who>();
  const Node other(joining_options(root, security));
  CHECK(other.call<&twice>("a", 21).get() == 42);
  CHECK(other.call<&who>("a").get() == "token");
  CHECK(info_of(other, "a").identity == "token");
  CHECK(info_of(root, "b").identity == "token");
}

TEST_CASE("without any option the token of the user serves loopback, and is made once",
          "[threads]") {
  const CertificateFiles files;
  const std::string home = files.write("home", "");
  std::filesystem::remove(home);
  std::filesystem::create_directory(home);
  const Variable no_file("BATCHRPC_TOKEN_FILE", std::nullopt);
  const Variable no_token("BATCHRPC_TOKEN", std::nullopt);
  const Variable at_home("HOME", home);
  Node root(root_options({}));
  root.expose<&twice>();
  {
    const Node other(joining_options(root, {}));
    CHECK(other.call<&twice>("a", 21).get() == 42);
  }
  struct stat found {};
  REQUIRE(::stat((home + "/.batchrpc/token").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  const auto made = found.st_ino;
  const Node another(joining_options(root, {}, "c"));
  REQUIRE(::stat((home + "/.batchrpc/token").c_str(), &found) == 0);
  CHECK(found.st_ino == made);
}

TEST_CASE("a token of the user that cannot be used is refused when the node starts", "[threads]") {
  const CertificateFiles files;
  const std::string home = files.write("home", "");
  std::filesystem::remove(home);
  std::filesystem::create_directories(home + "/.batchrpc");
  const std::string token = files.write("home/.batchrpc/token", tls::make_token());
  ::chmod(token.c_str(), 0644);
  const Variable no_file("BATCHRPC_TOKEN_FILE", std::nullopt);
  const Variable no_token("BATCHRPC_TOKEN", std::nullopt);
  const Variable at_home("HOME", home);
  NodeOptions options = root_options({});
  options.join = "tcp://127.0.0.1:0";
  CHECK_THAT(message_of(options),
             Catch::StartsWith("InvalidArgument") &&
                 Catch::Contains(token + " can be read or written by others; run: chmod go="));
  LogLines log;
  NodeOptions by_unix = real_root("a", 1);  // it needs no token
  by_unix.logging.sink = log.sink();
  CHECK(message_of(by_unix) == "no error");
  CHECK(log.contain(token + " can be read or written by others"));
}

TEST_CASE("beyond loopback a node without a token refuses to start, and names the three ways",
          "[threads]") {
  const Variable no_file("BATCHRPC_TOKEN_FILE", std::nullopt);
  const Variable no_token("BATCHRPC_TOKEN", std::nullopt);
  for (const char* const address : {"tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://192.0.2.1:29500"}) {
    INFO(address);
    NodeOptions listening = root_options({});
    listening.listen = address;
    CHECK_THAT(message_of(listening),
               Catch::Contains("InvalidArgument") && Catch::Contains("token_file") &&
                   Catch::Contains("certificate") && Catch::Contains("insecure"));
  }
  NodeOptions joining = root_options({});
  joining.rank = 1;
  joining.join = "tcp://192.0.2.1:29500";
  CHECK_THAT(message_of(joining), Catch::Contains("InvalidArgument: NodeOptions::join"));
  SecurityOptions security;
  security.insecure = true;
  NodeOptions insecure = root_options(security);
  insecure.listen = "tcp://0.0.0.0:0";
  CHECK(message_of(insecure) == "no error");
}

TEST_CASE("a token in the environment is taken, and serves other hosts", "[threads]") {
  const Variable no_file("BATCHRPC_TOKEN_FILE", std::nullopt);
  const Variable token("BATCHRPC_TOKEN", tls::make_token());
  NodeOptions options = root_options({});
  options.listen = "tcp://0.0.0.0:0";
  CHECK(message_of(options) == "no error");
}

TEST_CASE("options and files that cannot be used are refused when the node starts", "[threads]") {
  const CertificateFiles files;
  const auto with_token = [&](const std::string& path) {
    SecurityOptions security;
    security.token_file = path;
    return message_of(root_options(security));
  };
  CHECK_THAT(with_token("/nowhere/token"), Catch::Contains("cannot be read"));
  CHECK_THAT(with_token("/tmp"), Catch::Contains("is not a file"));
  CHECK_THAT(with_token(files.write("short", "secret")), Catch::Contains("at least 32"));
  CHECK_THAT(with_token(files.write("empty", "\n")), Catch::Contains("is empty"));
  CHECK_THAT(with_token(files.write("long", std::string(5000, 'x'))), Catch::Contains("4096"));
  const std::string open = files.write("open", tls::make_token());
  ::chmod(open.c_str(), 0644);
  CHECK_THAT(with_token(open), Catch::Contains("can be read or written by others"));

  SecurityOptions half = files.options("a");
  half.key.clear();
  CHECK_THAT(message_of(root_options(half)), Catch::Contains("certificate, key and authority"));
  SecurityOptions both = files.options("a");
  both.token_file = open;
  CHECK_THAT(message_of(root_options(both)), Catch::Contains("use one of them"));
  SecurityOptions insecure = files.options("a");
  insecure.insecure = true;
  CHECK_THAT(message_of(root_options(insecure)), Catch::Contains("choose one"));
  SecurityOptions missing = files.options("a");
  missing.authority = "/nowhere/ca.pem";
  CHECK_THAT(message_of(root_options(missing)), Catch::Contains("security.authority"));
  const std::string fifo = files.write("fifo", "");
  REQUIRE(::unlink(fifo.c_str()) == 0);
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const auto option : {&SecurityOptions::certificate, &SecurityOptions::key,
                            &SecurityOptions::authority, &SecurityOptions::revocations}) {
    SecurityOptions waits = files.options("a");
    waits.*option = fifo;
    CHECK_THAT(message_of(root_options(waits)), Catch::Contains(fifo + " is a FIFO, a device"));
  }
  SecurityOptions mixed = files.options("a");
  mixed.key = files.options("b").key;
  CHECK_THAT(message_of(root_options(mixed)), Catch::Contains("belongs to"));
  CHECK_THAT(message_of(root_options(files.options("a", -2h, -1h))),
             Catch::Contains("has expired"));
  CHECK_THAT(message_of(root_options(files.options("a", 1h, 2h))),
             Catch::Contains("is not valid yet"));
  SecurityOptions readable = files.options("a");
  ::chmod(readable.key.c_str(), 0644);
  CHECK_THAT(message_of(root_options(readable)), Catch::Contains("by every user of this host"));
  ::chmod(readable.key.c_str(), 0640);
  CHECK(message_of(root_options(readable)) == "no error");
  SecurityOptions absent = files.options("a");
  absent.certificate = "/nowhere/a.pem";
  CHECK_THAT(message_of(root_options(absent)), Catch::Contains("No such file"));
  CHECK_THAT(message_of(root_options(files.options("other"))),
             Catch::Contains("not for the node 'a' of the job 'job'"));
}

TEST_CASE("certificates prove names: calls see the identity of their caller", "[threads]") {
  const CertificateFiles files;
  Node root(root_options(files.options("a")));
  root.expose<&who>();
  root.expose<&twice>({.allow = [](const PeerIdentity& caller) {
    return caller.identity == "spiffe://test/job/job/node/b";
  }});
  const Node b(joining_options(root, files.options("b"), "b"));
  const Node c(joining_options(root, files.options("c"), "c"));
  CHECK(b.call<&who>("a").get() == "spiffe://test/job/job/node/b");
  CHECK(b.call<&twice>("a", 1).get() == 2);
  CHECK_THROWS_AS(c.call<&twice>("a", 1).get(), PermissionDenied);
  CHECK_THAT(to_prometheus(root.metrics()),
             Catch::Contains(
                 "batchrpc_peer_info{peer=\"b\",identity=\"spiffe://test/job/job/node/b\"} 1"));
  CHECK_THAT(to_json(root.metrics()),
             Catch::Contains("\"identity\":\"spiffe://test/job/job/node/c\""));
}

TEST_CASE("another node at the address of a root that has ended is not taken for the root",
          "[threads]") {
  const CertificateFiles files;
  std::optional<Node> root;
  root.emplace(root_options(files.options("a")));
  NodeOptions other = root_options(files.options("other"), "other");
  other.join = root->address();
  NodeOptions again = root_options(files.options("a"));
  again.join = root->address();
  NodeOptions member = joining_options(*root, files.options("b"));
  LogLines lines;
  member.logging.sink = lines.sink();
  const Node b(member);
  root.reset();
  {
    const Node impostor(other);
    REQUIRE(becomes_true([&] { return lines.contain("cannot return to its group yet"); }));
    CHECK(lines.contain("but the root of this group is spiffe://test/job/job/node/a"));
    CHECK(info_of(impostor, "b").name.empty());
  }
  const Node back(again);
  CHECK(back.wait_for_peer("b", 20s).get().name == "b");
}

TEST_CASE("a Unix socket proves the user of its peer", "[threads]") {
  Node root(real_root("a", 1));
  root.expose<&who>();
  NodeOptions options = real_joining(root, "b", 1);
  const Node other(options);
  CHECK(other.call<&who>("a").get() == "user " + std::to_string(::geteuid()));
}

TEST_CASE("a node that says another name than its certificate is refused by both sides",
          "[threads]") {
  const CertificateFiles files;
  const auto as_other = [&](const std::string& certified) {
    return [options = files.options(certified)](const TransportContext& context) {
      auto security = std::make_shared<tls::TlsSecurity>(tls::TlsSecurity::Parts{
          .loop = context.loop,
          .make_credentials = [options] { return unchecked_credentials(options); }});
      return std::make_shared<TcpTransport>(std::dynamic_pointer_cast<SocketLoop>(context.loop),
                                            context.log, std::move(security));
    };
  };
  const std::string refusal =
      "a node that is spiffe://test/job/job/node/mallory by its certificate says that it is";
  const Node root(root_options(files.options("a")));
  NodeOptions lying = joining_options(root, {}, "b");
  lying.transports = {as_other("mallory")};
  CHECK_THAT(message_of(lying), Catch::Contains(refusal + " 'b'"));

  NodeOptions lying_root = root_options({}, "r");
  lying_root.transports = {as_other("mallory")};
  const Node false_root(lying_root);
  CHECK_THAT(message_of(joining_options(false_root, files.options("b"))),
             Catch::Contains(refusal + " 'r'"));
}

TEST_CASE("a node with another token does not join, and is told why", "[threads]") {
  const CertificateFiles files;
  SecurityOptions one;
  one.token_file = files.write("one", tls::make_token());
  SecurityOptions other;
  other.token_file = files.write("other", tls::make_token());
  const Node root(root_options(one));
  CHECK_THAT(message_of(joining_options(root, other)),
             Catch::Contains("the peer refuses this node's token"));
  SecurityOptions insecure;
  insecure.insecure = true;
  CHECK_THAT(message_of(joining_options(root, insecure)), Catch::Contains("JoinFailed"));
}

}  // namespace nodes_test
}  // namespace batchrpc::test
