#include "call_benchmark/strangers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <batchrpc/batchrpc.hpp>
#include <batchrpc/transport/tcp_address.hpp>
#include <batchrpc/wire/envelope.hpp>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "call_benchmark/child.hpp"
#include "call_benchmark/functions.hpp"
#include "call_benchmark/node_client.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/report.hpp"
#include "common/statistics.hpp"

namespace call_benchmark {

namespace {

using batchrpc::Word;

constexpr std::array kKinds{
    std::pair{Strangers::none, "none"}, std::pair{Strangers::slow_loris, "slow-loris"},
    std::pair{Strangers::flood, "flood"}, std::pair{Strangers::resets, "resets"}};

/// A frame as described in docs/wire.md.
template <class... Args>
std::vector<Word> frame(std::uint16_t kind, std::uint64_t id, const Args&... args) {
  batchrpc::Encoder encoder(batchrpc::wire::kEnvelopeWords);
  batchrpc::encode_struct<Args...>(encoder, batchrpc::wire::kBodyPointer, args...);
  std::vector<Word> words = encoder.words();
  words[0] = Word{words.size() - 1} << 32;
  words[1] = Word{5} << 32 | Word{3} << 48;
  words[2] = id;
  words[5] = Word{kind} << 16;
  return words;
}

std::vector<Word> hello(std::uint64_t number, const std::string& job) {
  return frame(0, 0, std::uint16_t{1}, std::uint16_t{0}, std::int32_t{-1}, 2 * number + 1,
               std::uint64_t{0}, std::uint64_t{0}, "stranger" + std::to_string(number), job);
}

class StrangersSocket {
 public:
  /// Its descriptor is -1 if the system has no descriptor or port at the moment.
  explicit StrangersSocket(const sockaddr_in& address)
      : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // Reset on close: thousands of connections that close normally would use up the ports.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const int small = 4096;
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    const auto* const there = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(descriptor_, there, sizeof address) != 0) close();
  }
  ~StrangersSocket() { close(); }
  StrangersSocket(StrangersSocket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  StrangersSocket& operator=(StrangersSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  /// Sends as much as is possible at once. Returns false if the other side has closed.
  bool send(std::span<const std::byte> bytes) const {
    const auto sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent >= 0 || errno == EAGAIN;
  }
  bool send(const std::vector<Word>& words) const { return send(std::as_bytes(std::span(words))); }

 private:
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  int descriptor_;
};

class Paced {
 public:
  explicit Paced(int each_second) : pause_(std::chrono::nanoseconds(1'000'000'000 / each_second)) {}
  void wait() { std::this_thread::sleep_until(next_ += pause_); }

 private:
  const Clock::duration pause_;
  Clock::time_point next_ = Clock::now();
};

[[noreturn]] void trickle(const sockaddr_in& address) {
  constexpr std::size_t kStrangers = 64;
  constexpr int kBytesASecond = 20;  // per connection
  const std::vector<Word> words = hello(1, std::string(10'000, 'x'));
  const auto bytes = std::as_bytes(std::span(words));
  struct One {
    StrangersSocket socket;
    std::size_t sent = 0;
  };
  std::vector<One> all;
  for (std::size_t i = 0; i < kStrangers; ++i)
    all.push_back({.socket = StrangersSocket(address)});
  Paced paced(kBytesASecond * static_cast<int>(kStrangers));
  while (true) {
    for (One& one : all) {
      paced.wait();
      if (!one.socket.send(bytes.subspan(one.sent++ % bytes.size(), 1)))
        one = {StrangersSocket(address)};
    }
  }
}

[[noreturn]] void flood(const sockaddr_in& address) {
  constexpr std::size_t kOpen = 200;  // open at once
  constexpr std::string_view kRequest = "GET / HTTP/1.1\r\n\r\n";
  std::deque<StrangersSocket> open;
  Paced paced(2000);
  for (std::uint64_t number = 0;; ++number) {
    paced.wait();
    open.emplace_back(address);
    if (number % 2 == 0) open.back().send(std::as_bytes(std::span(kRequest)));
    if (open.size() > kOpen) open.pop_front();
  }
}

[[noreturn]] void reset(const sockaddr_in& address) {
  const std::string name = "call_benchmark::echo_short";
  const std::vector<std::byte> payload(12'000);
  Paced paced(200);
  for (std::uint64_t number = 0;; ++number) {
    paced.wait();
    const StrangersSocket socket(address);
    socket.send(hello(number, {}));
    socket.send(frame(1, 0, std::uint32_t{0}, name,
                      std::string(batchrpc::signature<Payload, std::span<const std::byte>>())));
    const std::vector<Word> call = frame(2, 1, payload);
    for (int i = 0; i < 8; ++i)  // it never reads the replies
      socket.send(call);
    socket.send(std::as_bytes(std::span(call)).first(number % 12'000));
  }
}

std::vector<double> take(Client& client, double seconds, Interrupt& interrupt) {
  const Stretch stretch(interrupt, seconds);
  auto rtt = client.run(stretch, true).rtt_us;
  interrupt.check();
  return rtt;
}

}  // namespace

nlohmann::json measure_strangers(const Options& options, std::ostream& out, Interrupt& interrupt) {
  constexpr double kWarmUp = 0.2;
  const Transport transport =
      options.transports.front() == Transport::tls ? Transport::tls : Transport::tcp;
  Child server(Role::pestered_server, transport);
  const std::string address = server.read_line(interrupt);
  const batchrpc::Node node = start_client(transport, address, "client");
  const auto client =
      make_node_client({&node}, 1, Case::scalars3, Handlers::short_ones, Style::get);
  take(*client, kWarmUp, interrupt);

  std::map<Strangers, std::vector<double>> rtt_us;
  for (int round = 0; round < options.rounds; ++round) {
    for (const auto& [kind, name] : kKinds) {
      std::optional<Child> strangers;
      if (kind != Strangers::none) {
        strangers.emplace(Role::strangers, transport, address, static_cast<int>(kind));
        strangers->read_line(interrupt);
        take(*client, kWarmUp, interrupt);
      }
      const auto more = take(*client, options.seconds, interrupt);
      rtt_us[kind].insert(rtt_us[kind].end(), more.begin(), more.end());
    }
  }

  nlohmann::json entries = nlohmann::json::array();
  const auto alone = batchrpc_examples::percentiles(rtt_us[Strangers::none], {50, 99});
  char line[128];
  std::snprintf(line, sizeof line, "%-10s %10s %8s %8s %8s %8s\n", "strangers", "calls", "p50 us",
                "p99 us", "x p50", "x p99");
  out << "Calls of a peer over " << to_string(transport)
      << ", one at a time, while strangers connect to the same port\n"
      << line;
  for (const auto& [kind, name] : kKinds) {
    const auto rtt = batchrpc_examples::percentiles(rtt_us[kind], {50, 99});
    std::snprintf(line, sizeof line, "%-10s %10zu %8.1f %8.1f %8.2f %8.2f\n", name,
                  rtt_us[kind].size(), rtt[0], rtt[1], rtt[0] / alone[0], rtt[1] / alone[1]);
    out << line << std::flush;
    entries.push_back({{"system", "batchrpc"},
                       {"case", "strangers"},
                       {"strangers", name},
                       {"transport", to_string(transport)},
                       {"calls", rtt_us[kind].size()},
                       {"rtt_us", {{"p50", rtt[0]}, {"p99", rtt[1]}}},
                       {"to_alone", {{"p50", rtt[0] / alone[0]}, {"p99", rtt[1] / alone[1]}}},
                       {"machine", machine()}});
  }
  return entries;
}

void run_strangers(Strangers strangers, const std::string& address) {
  const auto parsed = batchrpc::TcpAddress::parse(address);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(parsed.port);
  if (::inet_pton(AF_INET, parsed.host.c_str(), &there.sin_addr) != 1) {
    throw std::invalid_argument("not a numeric address: " + address);
  }
  switch (strangers) {
    case Strangers::slow_loris:
      trickle(there);
    case Strangers::flood:
      flood(there);
    case Strangers::resets:
      reset(there);
    case Strangers::none:
      break;
  }
  throw std::invalid_argument("unknown kind of strangers");
}

}  // namespace call_benchmark
