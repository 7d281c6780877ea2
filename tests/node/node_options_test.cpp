#include "batchrpc/call/node_options.hpp"

#include <asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <set>

#include "batchrpc/base/error.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/testing.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "node/options_check.hpp"

namespace batchrpc {
namespace node_options_test {

using namespace std::chrono_literals;

/// Looks at the options as a node does.
void check(const NodeOptions& options) {
  const NodeOptions taken = completed(options);
  const TransportSet transports(taken.transports,
                                {.loop = SocketLoop::start(), .node = taken.name});
  check_addresses(taken, transports);
}

/// The message with which the options that `change` makes are refused.
std::string refusal(const std::function<void(NodeOptions&)>& change) {
  NodeOptions options;
  options.name = "node";
  options.join = "tcp://127.0.0.1:29500";
  CHECK_NOTHROW(check(options));
  change(options);
  try {
    check(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST_CASE("every option out of its range is refused by its name", "[threads]") {
  const std::pair<const char*, std::function<void(NodeOptions&)>> cases[] = {
      {"NodeOptions::rank", [](auto& o) { o.rank = -2; }},
      {"NodeOptions::rank", [](auto& o) { o.rank = 1 << 20; }},
      {"NodeOptions::rank", [](auto& o) { o.rank = 2, o.world_size = 2; }},
      {"NodeOptions::world_size", [](auto& o) { o.world_size = -1; }},
      {"NodeOptions::world_size", [](auto& o) { o.world_size = (1 << 20) + 1; }},
      {"NodeOptions::join", [](auto& o) { o.rank = 1, o.join = ""; }},
      {"NodeOptions::join", [](auto& o) { o.rank = -1, o.join = ""; }},
      {"NodeOptions::num_worker_threads", [](auto& o) { o.num_worker_threads = 0; }},
      {"NodeOptions::join", [](auto& o) { o.rank = 1, o.join = "tcp://127.0.0.1:0"; }},
      {"NodeOptions::busy_poll", [](auto& o) { o.busy_poll = -1ns; }},
      {"NodeOptions::busy_poll", [](auto& o) { o.busy_poll = 2s; }},
      {"NodeOptions::liveness.ping_after",
       [](auto& o) { o.liveness.ping_after = o.liveness.dead_after = Duration::max(); }},
      {"NodeOptions::liveness.dead_after",
       [](auto& o) { o.liveness.dead_after = Duration::max(); }},
      {"NodeOptions::num_worker_threads", [](auto& o) { o.num_worker_threads = -1; }},
      {"NodeOptions::num_worker_threads", [](auto& o) { o.num_worker_threads = 1025; }},
      {"NodeOptions::call_timeout", [](auto& o) { o.call_timeout = 0s; }},
      {"NodeOptions::call_timeout", [](auto& o) { o.call_timeout = -1s; }},
      {"NodeOptions::join_timeout", [](auto& o) { o.join_timeout = 0s; }},
      {"NodeOptions::expose_within", [](auto& o) { o.expose_within = -1ns; }},
      {"NodeOptions::shutdown_timeout", [](auto& o) { o.shutdown_timeout = -1ns; }},
      {"NodeOptions::liveness.ping_after", [](auto& o) { o.liveness.ping_after = 999us; }},
      {"NodeOptions::liveness.dead_after", [](auto& o) { o.liveness.dead_after = 999ms; }},
      {"NodeOptions::limits.max_frame_bytes", [](auto& o) { o.limits.max_frame_bytes = 65535; }},
      {"NodeOptions::limits.max_frame_bytes",
       [](auto& o) { o.limits.max_frame_bytes = (std::uint64_t{1} << 32) + 1; }},
      {"NodeOptions::limits.max_payload_bytes", [](auto& o) { o.limits.max_payload_bytes = 0; }},
      {"NodeOptions::limits.max_payload_bytes",
       [](auto& o) { o.limits.max_payload_bytes = ~std::uint64_t{0}; }},
      {"NodeOptions::name", [](auto& o) { o.name = std::string(256, 'x'); }},
      {"NodeOptions::name", [](auto& o) { o.name = std::string("a\0b", 3); }},
      {"NodeOptions::join", [](auto& o) { o.join = "file://relative"; }},
  };
  for (const auto& [option, change] : cases) {
    const std::string message = refusal(change);
    INFO(option << " refused with: " << message);
    CHECK_THAT(message, Catch::Contains(option));
  }
}

TEST_CASE("the message of an option out of range says the range and what was given", "[threads]") {
  CHECK(refusal([](auto& o) { o.num_worker_threads = 5000; }) ==
        "NodeOptions::num_worker_threads must be from 1 to 1024, but is 5000");
  CHECK_THAT(refusal([](auto& o) { o.rank = 7, o.world_size = 4; }),
             Catch::Contains("is 7, but world_size is 4 and the largest rank 3"));
}

TEST_CASE("an address that is none is refused with an example of what is right", "[threads]") {
  for (const char* address : {"nonsense", "tcp://", "tcp://host", "tcp://host:99999", "http://x:1",
                              "unix://", "inproc://", "tcp://[::1:80"}) {
    const std::string message = refusal([address](auto& o) { o.join = address; });
    INFO(message);
    CHECK(message != "nothing was refused");
    CHECK_THAT(message, Catch::Contains("://"));
    CHECK(refusal([address](auto& o) { o.listen = address; }) != "nothing was refused");
  }
}

TEST_CASE("an inproc:// address without a network is refused, which says what is missing",
          "[threads]") {
  const std::string message = refusal([](auto& o) { o.join = "inproc://world"; });
  CHECK_THAT(message, Catch::Contains("NodeOptions::join") &&
                          Catch::Contains("NodeOptions::transports") &&
                          Catch::Contains("InprocNetwork::make()"));
  CHECK(refusal([](auto& o) {
          o.join = "inproc://world";
          o.transports = {inproc_transport(InprocNetwork::make())};
        }) == "nothing was refused");
}

TEST_CASE("a scheme that the node has no transport for is refused with all that it has",
          "[threads]") {
  const std::string message = refusal([](auto& o) { o.join = "http://x:1"; });
  CHECK_THAT(message, Catch::Contains("tcp://host:port") && Catch::Contains("unix:///path") &&
                          Catch::Contains("file:///path") && Catch::Contains("env://"));
}

TEST_CASE("an io_context and a loop exclude each other", "[threads]") {
  asio::io_context context;
  CHECK_THAT(refusal([&context](auto& o) {
               o.io_context = &context;
               o.simulation.loop = std::make_shared<VirtualLoop>();
             }),
             Catch::Contains("NodeOptions::io_context"));
}

TEST_CASE("options out of range are refused by the node itself, which is then not made") {
  NodeOptions options;
  options.num_worker_threads = 0;
  CHECK_THROWS_AS(Node(options), InvalidArgument);
  CHECK_THROWS_AS(Node::start(options), InvalidArgument);
}

TEST_CASE("a node without a name gets one from its rank") {
  NodeOptions options;
  options.join = "unix:///tmp/x";
  CHECK(completed(options).name == "node0");
  options.rank = 3;
  CHECK(completed(options).name == "node3");
  options.rank = -1;
  const std::string name = completed(options).name;
  CHECK_THAT(name, Catch::StartsWith("node-"));
  std::set<std::string> names;
  for (int i = 0; i < 5000; ++i)
    names.insert(completed(options).name);
  CHECK(names.size() == 5000);
  options.simulation.seed = 7;
  CHECK(completed(options).name != completed(options).name);
  options.simulation.loop = std::make_shared<VirtualLoop>();
  CHECK(completed(options).name == completed(options).name);
  options.simulation.loop = nullptr;
  options.name = "mine";
  CHECK(completed(options).name == "mine");
}

/// Environment variables, for the scope's time.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const char* name :
         {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name,
                           value != nullptr ? std::optional<std::string>(value) : std::nullopt);
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables)
      ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name, value->c_str(), 1);
      } else {
        ::unsetenv(name);
      }
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST_CASE("env:// takes rank, world size and address from the environment, as torchrun sets them") {
  NodeOptions options;
  options.join = "env://";
  {
    const Environment environment({{"MASTER_ADDR", "10.0.0.7"},
                                   {"MASTER_PORT", "29400"},
                                   {"RANK", "3"},
                                   {"WORLD_SIZE", "8"}});
    const NodeOptions taken = completed(options);
    CHECK(taken.rank == 3);
    CHECK(taken.world_size == 8);
    CHECK(taken.join == "tcp://10.0.0.7:29400");
    CHECK(taken.name == "node3");
  }
  {
    const Environment environment({{"MASTER_ADDR", "::1"},
                                   {"MASTER_PORT", "29400"},
                                   {"RANK", "0"},
                                   {"WORLD_SIZE", "1"},
                                   {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
    // The agent of torchrun listens on MASTER_PORT itself: the root takes the next.
    CHECK(completed(options).join == "tcp://[::1]:29401");
  }
  {
    const Environment environment({{"MASTER_ADDR", "localhost"},
                                   {"MASTER_PORT", "65535"},
                                   {"RANK", "0"},
                                   {"WORLD_SIZE", "1"},
                                   {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
    CHECK(completed(options).join == "tcp://localhost:65534");
  }
}

TEST_CASE("a variable that is missing or no number is named, with what it should be") {
  NodeOptions options;
  options.join = "env://";
  const auto message = [&](std::vector<std::pair<const char*, const char*>> variables) {
    const Environment environment(variables);
    try {
      (void)completed(options);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  CHECK_THAT(message({}), Catch::Contains("RANK") && Catch::Contains("torchrun"));
  CHECK_THAT(message({{"RANK", "0"}}), Catch::Contains("WORLD_SIZE"));
  CHECK_THAT(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), Catch::Contains("MASTER_PORT"));
  CHECK_THAT(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
             Catch::Contains("MASTER_ADDR"));
  for (const char* wrong : {"x", "1x", "", " 1", "-1", "99999999999999999999", "0x1"}) {
    CHECK_THAT(message({{"RANK", wrong}, {"WORLD_SIZE", "2"}}), Catch::Contains("RANK"));
  }
  CHECK_THAT(message({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
             Catch::Contains("'0'") && Catch::Contains("from 1"));
  CHECK_THAT(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "65536"}}),
             Catch::Contains("'65536'") && Catch::Contains("65535"));
  CHECK_THAT(message({{"RANK", "2"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_PORT", "29500"},
                      {"MASTER_ADDR", "localhost"}}),
             Catch::Contains("is 2, but world_size is 2"));
}

}  // namespace node_options_test
}  // namespace batchrpc
