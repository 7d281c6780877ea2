#include "node/options_check.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <random>
#include <string_view>

#include "base/plain_text.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/tcp_address.hpp"
#include "peers/member.hpp"

namespace batchrpc {
namespace {

constexpr std::string_view kFile = "file://";
constexpr std::string_view kEnvironment = "env://";
constexpr int kMaxWorkers = 1024;
constexpr Duration kLongestSilence = std::chrono::hours(24 * 365);
constexpr std::size_t kMaxNodeName = 255;

void check(bool good, const std::string& option, const std::string& range) {
  if (!good) throw InvalidArgument("NodeOptions::" + option + " " + range);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    throw InvalidArgument(
        std::string("the environment variable ") + name +
        " is not set; start the program with torchrun or a similar launcher, which sets "
        "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, or set NodeOptions::join yourself");
  }
  return value;
}

int number(const char* name, int lowest, int highest) {
  const std::string text = variable(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    throw InvalidArgument(std::string("the environment variable ") + name + " is '" + text +
                          "'; it must be a number from " + std::to_string(lowest) + " to " +
                          std::to_string(highest));
  }
  return value;
}

void take_environment(NodeOptions& options) {
  options.rank = number("RANK", 0, kMaxWorldSize);
  options.world_size = number("WORLD_SIZE", 1, kMaxWorldSize);
  int port = number("MASTER_PORT", 1, 65535);
  // torchrun's agent listens on MASTER_PORT itself then, so the root uses the next port.
  const char* agent_store = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (agent_store != nullptr && std::string_view(agent_store) == "True") {
    port = port < 65535 ? port + 1 : port - 1;
  }
  const std::string host = variable("MASTER_ADDR");
  options.join = TcpAddress{.host = host, .port = static_cast<std::uint16_t>(port)}.to_string();
}

// Differs between containers, also with equal process ids and with one seed for all.
std::string random_text(const NodeOptions& options) {
  const bool in_tests = options.simulation.loop && options.simulation.seed != 0;
  std::random_device device;
  const std::uint64_t number = in_tests ? std::mt19937_64(~options.simulation.seed)()
                                        : std::uint64_t{device()} << 32 | device();
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return {digits.data(), end};
}

}  // namespace

NodeOptions completed(NodeOptions options) {
  if (options.join == kEnvironment) take_environment(options);
  check(options.rank >= -1 && options.rank < kMaxWorldSize, "rank",
        "must be -1 (the root chooses) or at least 0, but is " + std::to_string(options.rank));
  check(options.world_size >= 0 && options.world_size <= kMaxWorldSize, "world_size",
        "must be 0 (open) or at least 1, but is " + std::to_string(options.world_size));
  check(options.world_size == 0 || options.rank < options.world_size, "rank",
        "is " + std::to_string(options.rank) + ", but world_size is " +
            std::to_string(options.world_size) + " and the largest rank " +
            std::to_string(options.world_size - 1));
  check(options.rank == 0 || !options.join.empty(), "join",
        "is empty: a node that is not the root (rank 0) needs the root's address");
  check(options.num_worker_threads >= 1 && options.num_worker_threads <= kMaxWorkers,
        "num_worker_threads",
        "must be from 1 to " + std::to_string(kMaxWorkers) + ", but is " +
            std::to_string(options.num_worker_threads));
  check(options.busy_poll >= Duration::zero() && options.busy_poll <= std::chrono::seconds(1),
        "busy_poll", "must be from 0 to 1 s");
  check(options.call_timeout > Duration::zero(), "call_timeout", "must be positive");
  check(options.join_timeout > Duration::zero(), "join_timeout", "must be positive");
  check(options.expose_within >= Duration::zero(), "expose_within", "must not be negative");
  check(options.shutdown_timeout >= Duration::zero(), "shutdown_timeout", "must not be negative");
  check(options.liveness.ping_after >= std::chrono::milliseconds(1) &&
            options.liveness.ping_after <= kLongestSilence,
        "liveness.ping_after", "must be from 1 ms to 365 days");
  check(options.liveness.dead_after >= options.liveness.ping_after &&
            options.liveness.dead_after <= kLongestSilence,
        "liveness.dead_after", "must be from ping_after to 365 days");
  check(options.liveness.rref_lease >= std::chrono::milliseconds(1) &&
            options.liveness.rref_lease <= kLongestSilence,
        "liveness.rref_lease", "must be from 1 ms to 365 days");
  check(options.limits.max_frame_bytes >= 64 * 1024 &&
            options.limits.max_frame_bytes <= wire::kMostFrameBytes,
        "limits.max_frame_bytes", "must be from 64 KiB to 4 GiB");
  check(options.limits.max_payload_bytes >= 64 * 1024 &&
            options.limits.max_payload_bytes <= std::uint64_t{1} << 48,
        "limits.max_payload_bytes", "must be from 64 KiB to 256 TiB");
  check(options.limits.max_outstanding_bytes >= 64 * 1024 &&
            options.limits.max_outstanding_bytes <= std::uint64_t{1} << 48,
        "limits.max_outstanding_bytes", "must be from 64 KiB to 256 TiB");
  check(options.name.size() <= kMaxNodeName && is_plain_text(options.name), "name",
        "must have at most 255 bytes of UTF-8, without control characters");
  check(is_plain_text(options.job), "job", "must be UTF-8, without control characters");
  check(options.io_context == nullptr || !options.simulation.loop, "io_context",
        "and NodeOptions::simulation.loop exclude each other: set one of them");
  if (options.name.empty()) {
    options.name = options.rank >= 0
                       ? "node" + std::to_string(options.rank)
                       : "node-" + std::to_string(::getpid()) + "-" + random_text(options);
  }
  check(!joins_by_file(options) || join_file(options).starts_with('/'), "join",
        "has a relative path after file://; write an absolute one, as in file:///tmp/run1");
  if (options.transports.empty() && !options.simulation.loop)
    options.transports = built_in_transports();
  return options;
}

void check_addresses(const NodeOptions& options, const TransportSet& transports) {
  const auto check_address = [&](const std::string& text, AddressUse use, const char* option,
                                 const char* others) {
    try {
      (void)transports.parse(text, use);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(std::string("NodeOptions::") + option + ": " + error.what() + others);
    }
  };
  if (!options.join.empty() && !joins_by_file(options)) {
    check_address(options.join, options.rank == 0 ? AddressUse::listen : AddressUse::connect,
                  "join", " (a node also joins by file:///path or env://)");
  }
  if (!options.listen.empty()) check_address(options.listen, AddressUse::listen, "listen", "");
}

bool joins_by_file(const NodeOptions& options) noexcept { return options.join.starts_with(kFile); }

std::string join_file(const NodeOptions& options) { return options.join.substr(kFile.size()); }

}  // namespace batchrpc
