// Who gets a connection over TLS, and what the log says about the others.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tls/certificate_files.hpp"
#include "tls/tls_error.hpp"
#include "tls_fabric.hpp"

namespace batchrpc::test {
namespace handshake_test {

using namespace std::chrono_literals;
using tls::TlsError;

/// Log lines.
class Lines {
 public:
  [[nodiscard]] Log log() {
    return Log(LogLevel::info, [this](LogLevel, std::string_view line) {
      {
        const std::lock_guard lock(mutex_);
        all_ += std::string(line) + '\n';
      }
      added_.set();
    });
  }
  /// Waits until there is a line.
  [[nodiscard]] std::string first(WaitContext& waiting) {
    while (all().empty())
      added_.wait(waiting);
    return all();
  }
  [[nodiscard]] std::string all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::string all_;
  Signal added_;
};

/// Connects once: the client's error, and what the server logs by then.
struct Try {
  std::error_code error{};
  std::string server_log{};
};

Try connect_once(const MakeSecurity& server, const MakeSecurity& client, Lines& lines) {
  Fabric fabric = tls_fabric(server, client);
  Accepting accepting(fabric);
  Ends ends(fabric);
  auto [stream, error] = connect(fabric, accepting.address());
  // With TLS 1.3 a client that presents a certificate learns of its refusal when it first reads.
  if (stream) {
    ends.read(*stream, 1);
    error = ends.last.error;
  }
  return {.error = error, .server_log = lines.first(fabric.waiting())};
}

MakeSecurity by_token(char letter, Lines& lines, const std::string& job = "job") {
  return [=, &lines](const std::shared_ptr<Loop>& loop) {
    return token_security(loop, letter, lines.log(), job);
  };
}

MakeSecurity by_files(const SecurityOptions& options, const tls::Owner& owner, Lines& lines) {
  return [=, &lines](const std::shared_ptr<Loop>& loop) {
    return std::make_shared<tls::TlsSecurity>(
        tls::TlsSecurity::Parts{.loop = loop, .log = lines.log(), .make_credentials = [=] {
                                  return tls::certificate_credentials(options, owner);
                                }});
  };
}

MakeSecurity in_plain_text() {
  return [](const std::shared_ptr<Loop>&) { return nullptr; };
}

TEST_CASE("a token lets its holders connect, and proves so", "[threads]") {
  Lines lines;
  const Fabric fabric = tls_fabric(by_token('a', lines), by_token('a', lines));
  Accepting accepting(fabric);
  const Pair pair = accepting.connect();
  REQUIRE(pair.client->proof());
  REQUIRE(pair.server->proof());
  CHECK(pair.client->proof()->identity == "token");
  CHECK(pair.server->proof()->covers("any", "job"));
  CHECK(lines.all().empty());
}

TEST_CASE("another token, and that of another job, are refused on both sides", "[threads]") {
  for (const bool is_other_job : {false, true}) {
    Lines server;
    Lines client;
    const Try tried =
        connect_once(by_token('a', server),
                     is_other_job ? by_token('a', client, "other") : by_token('b', client), server);
    CHECK(tried.error);
    CHECK_THAT(client.all(), Catch::Contains("token"));
    CHECK_THAT(tried.server_log, Catch::Contains("the peer has another token, or another job"));
  }
}

TEST_CASE("a peer with a certificate is refused by one with a token, and the other way round",
          "[threads]") {
  const CertificateFiles files;
  const tls::Owner owner{.name = "worker1", .job = "job"};
  for (const bool server_has_token : {true, false}) {
    Lines server;
    Lines client;
    const auto token = by_token('a', server_has_token ? server : client);
    const auto certificate =
        by_files(files.options("worker1"), owner, server_has_token ? client : server);
    const Try tried = server_has_token ? connect_once(token, certificate, server)
                                       : connect_once(certificate, token, server);
    CHECK(tried.error);
    CHECK_FALSE(tried.server_log.empty());
  }
}

TEST_CASE("certificates prove the names of both sides", "[threads]") {
  const CertificateFiles files;
  Lines lines;
  const Fabric fabric =
      tls_fabric(by_files(files.options("learner"), {.name = "learner", .job = "job"}, lines),
                 by_files(files.options("worker1"), {.name = "worker1", .job = "job"}, lines));
  Accepting accepting(fabric);
  const Pair pair = accepting.connect();
  CHECK(pair.client->proof()->identity == "spiffe://test/job/job/node/learner");
  CHECK(pair.server->proof()->identity == "spiffe://test/job/job/node/worker1");
  CHECK(pair.server->proof()->covers("worker1", "job"));
  CHECK_FALSE(pair.server->proof()->covers("worker2", "job"));
  CHECK_FALSE(pair.server->proof()->covers("worker1", "other"));
  CHECK(lines.all().empty());
}

TEST_CASE("each kind of certificate that does not hold is refused, and the log says why",
          "[threads]") {
  struct Case {
    const char* what;
    std::function<SecurityOptions(const CertificateFiles&)> options;
    const char* server_log;
  };
  const std::vector<Case> cases{
      {"another authority",
       [](const CertificateFiles& files) { return files.by_other_authority("worker1"); },
       "its authority is not in NodeOptions::security.authority"},
      {"expired", [](const CertificateFiles& files) { return files.options("worker1", -2h, -1h); },
       "expired"},
      {"not valid yet",
       [](const CertificateFiles& files) { return files.options("worker1", 1h, 2h); },
       "not yet valid"},
      {"without a name", [](const CertificateFiles& files) { return files.named("worker1", {}); },
       "subject alternative name"},
      {"with the name of a web site",
       [](const CertificateFiles& files) {
         return files.named("worker1", {.uri = "https://example.org/", .dns = {}});
       },
       "scheme"},
      {"another trust domain",
       [](const CertificateFiles& files) {
         return files.named("worker1", {.uri = "spiffe://other/job/job/node/worker1", .dns = {}});
       },
       "trust domain"},
  };
  const CertificateFiles files;
  for (const Case& each : cases) {
    INFO(each.what);
    Lines server;
    Lines client;
    // The client does not check its own certificate as it does before it starts.
    const SecurityOptions options = each.options(files);
    const Try tried = connect_once(
        by_files(files.options("learner"), {.name = "learner", .job = "job"}, server),
        [&](const std::shared_ptr<Loop>& loop) {
          return std::make_shared<tls::TlsSecurity>(tls::TlsSecurity::Parts{
              .loop = loop, .log = client.log(), .make_credentials = [options] {
                return unchecked_credentials(options);
              }});
        },
        server);
    CHECK(tried.error);
    CHECK_THAT(tried.server_log, Catch::Contains(each.server_log));
  }
}

TEST_CASE("a revoked certificate is refused", "[threads]") {
  const CertificateFiles files;
  const SecurityOptions worker = files.options("worker1");
  SecurityOptions learner = files.options("learner");
  learner.revocations = files.revocations({worker.certificate});
  Lines server;
  Lines client;
  const Try tried =
      connect_once(by_files(learner, {.name = "learner", .job = "job"}, server),
                   by_files(worker, {.name = "worker1", .job = "job"}, client), server);
  CHECK(tried.error);
  CHECK_THAT(tried.server_log, Catch::Contains("revoked"));
}

TEST_CASE("plain text is refused on either side", "[threads]") {
  Lines server;
  Lines client;
  {
    Fabric fabric = tls_fabric(by_token('a', server), in_plain_text());
    Accepting accepting(fabric);
    Ends ends(fabric);
    auto [stream, error] = connect(fabric, accepting.address());
    REQUIRE(stream);
    ends.write_all(*stream, pattern(400, 1));
    ends.read(*stream, 100);
    CHECK((ends.last.end || ends.last.error));
    CHECK_THAT(server.first(fabric.waiting()), Catch::Contains("does not use TLS"));
  }
  {
    Fabric fabric = tls_fabric(in_plain_text(), by_token('a', client));
    Accepting accepting(fabric);
    Ends ends(fabric);
    std::unique_ptr<Stream> server_side;
    std::error_code failed;
    Waiter waiter;
    fabric.client->connect(accepting.address(), fabric.soon(),
                           [&](std::unique_ptr<Stream>, std::error_code error) {
                             failed = error;
                             waiter.notify();
                           });
    server_side = accepting.accept();
    ends.write_all(*server_side, pattern(400, 2));
    wait_for(fabric.waiting(), waiter);
    CHECK(failed == TlsError::not_tls);
  }
}

TEST_CASE("a handshake that does not go on ends at the deadline", "[threads]") {
  Lines lines;
  Fabric fabric = tls_fabric(in_plain_text(), by_token('a', lines));
  Accepting accepting(fabric);
  std::error_code failed;
  Waiter waiter;
  fabric.client->connect(accepting.address(), fabric.client_loop->now() + 50ms,
                         [&](std::unique_ptr<Stream>, std::error_code error) {
                           failed = error;
                           waiter.notify();
                         });
  const auto silent = accepting.accept();
  wait_for(fabric.waiting(), waiter);
  CHECK(failed == std::errc::timed_out);
}

TEST_CASE("the data that follows a handshake at once is not lost", "[threads]") {
  Lines lines;
  const Fabric fabric = tls_fabric(by_token('a', lines), by_token('a', lines));
  Accepting accepting(fabric);
  Ends ends(fabric);
  for (int i = 0; i < 50; ++i) {
    auto [client, error] = connect(fabric, accepting.address());
    REQUIRE(client);
    ends.write_all(*client, pattern(100, 1));
    const auto server = accepting.accept();
    CHECK(ends.read(*server, 100) == pattern(100, 1));
  }
}

TEST_CASE("a cut connection is an error, an end that was meant is none", "[threads]") {
  Lines lines;
  Fabric fabric = tls_fabric(by_token('a', lines), by_token('a', lines));
  Accepting accepting(fabric);
  Ends ends(fabric);
  Pair pair = accepting.connect();
  static_cast<tls::TlsStream&>(*pair.client).ending()->end(TlsError::expired);
  ends.read(*pair.server, 1);
  CHECK(ends.last.error == TlsError::closed_early);
  ends.read(*pair.client, 1);
  CHECK(ends.last.error == TlsError::expired);
  Pair other = accepting.connect();
  other.client->shutdown();
  ends.read(*other.server, 1);
  CHECK(ends.last.end);
}

}  // namespace handshake_test
}  // namespace batchrpc::test
