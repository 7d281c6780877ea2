// The proxy that other tests cut real connections with.
#include "cutting_proxy.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "fabrics.hpp"

namespace batchrpc::test {
namespace cutting_proxy_test {

/// What connects to the proxy reaches the fabric's server.
struct Line {
  explicit Line(const std::string& scheme, CuttingProxyOptions options = {})
      : fabric(socket_fabric(scheme)), accepting(fabric) {
    options.target = accepting.address();
    if (scheme != "tcp") options.listen = free_address(scheme);
    proxy.emplace(options);
  }
  Pair connect() {
    auto [client, error] = test::connect(fabric, proxy->address());
    if (error) throw std::system_error(error, "connect");
    return {std::move(client), accepting.accept()};
  }

  Fabric fabric;
  Accepting accepting;
  std::optional<CuttingProxy> proxy;
};

TEST_CASE("a proxy forwards both ways", "[threads]") {
  for (const std::string scheme : {"tcp", "unix", "unix-abstract"}) {
    Line line(scheme);
    Ends ends(line.fabric);
    Pair pair = line.connect();
    const auto sent = pattern(300'000, 1);
    CHECK(ends.transfer(*pair.client, *pair.server, sent) == sent);
    CHECK(ends.transfer(*pair.server, *pair.client, sent) == sent);
    CHECK(line.proxy->cuts() == 0);
    CHECK(line.proxy->connections() == 1);
    pair.client.reset();
    ends.read(*pair.server, 1);
    CHECK((ends.last.end || ends.last.error));
  }
}

TEST_CASE("a proxy cuts connections after random numbers of bytes, and takes new ones at once",
          "[threads]") {
  for (const bool reset : {true, false}) {
    Line line("tcp", {.seed = 3, .mean_bytes = 2000, .reset = reset});
    Ends ends(line.fabric);
    const auto sent = pattern(100, 1);
    std::uint64_t bytes = 0;
    bool inside = false;
    constexpr std::uint64_t kCuts = 50;
    for (std::uint64_t cut = 0; cut < kCuts; ++cut) {
      Pair pair = line.connect();
      while (true) {  // a message at a time
        const std::span<const std::byte> out(sent);
        if (pair.client->try_write({&out, 1}).error) break;
        const auto got = ends.read(*pair.server, sent.size());
        bytes += got.size();
        if (got.size() < sent.size()) {
          CHECK(std::equal(got.begin(), got.end(), sent.begin()));
          if (!got.empty()) inside = true;
          if (reset) CHECK(ends.last.error == std::errc::connection_reset);
          break;
        }
      }
    }
    CHECK(line.proxy->cuts() == kCuts);
    CHECK(line.proxy->connections() == kCuts);
    CHECK(inside);
    CHECK(bytes > kCuts * 1000);
    CHECK(bytes < kCuts * 4000);
  }
}

TEST_CASE("a proxy that stops forwarding keeps its connections, and goes on", "[threads]") {
  Line line("tcp");
  Ends ends(line.fabric);
  Pair pair = line.connect();
  ends.write_all(*pair.client, pattern(10, 1));
  CHECK(ends.read(*pair.server, 10).size() == 10);
  line.proxy->stop_forwarding();
  ends.write_all(*pair.client, pattern(10, 2));
  ends.write_all(*pair.server, pattern(10, 3));
  const Pair another = line.connect();  // is connected all the same
  line.proxy->go_on();
  CHECK(ends.read(*pair.server, 10) == pattern(10, 2));
  CHECK(ends.read(*pair.client, 10) == pattern(10, 3));
  line.proxy->cut_all();
  ends.read(*pair.client, 1);
  CHECK(ends.last.error == std::errc::connection_reset);
  ends.read(*another.server, 1);
  CHECK(ends.last.error == std::errc::connection_reset);
  CHECK(line.proxy->cuts() == 2);
}

}  // namespace cutting_proxy_test
}  // namespace batchrpc::test
