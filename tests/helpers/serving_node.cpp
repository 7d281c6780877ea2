#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"

// A node as a process of its own, for tests that kill, stop or part it. It lives until its input
// ends.
//
//   serving_node KEY=VALUE...   name, join, rank, world, dead_after (ms), timeout (ms), transport
//                               (tcp, unix), calls (the name of a peer, to call it every 10 ms)

// A program that ends in the middle of everything may leave memory behind.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();  // NOLINT
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace {

using namespace batchrpc;

std::string value_of(const std::map<std::string, std::string>& options, const std::string& key,
                     const std::string& otherwise) {
  const auto at = options.find(key);
  return at == options.end() ? otherwise : at->second;
}

long long now_in_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

/// Waits so many ms, or without end if negative.
bool input_ends_within(int ms) {
  pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  std::array<char, 64> input{};
  while (true) {
    if (::poll(&waiting, 1, ms) == 0) return false;
    if (::read(STDIN_FILENO, input.data(), input.size()) <= 0) return true;
  }
}

/// Says how many calls were answered, how many failed, and how many the slowest of the former took
/// in ms.
void call_until_input_ends(const Node& node, const std::string& callee) {
  std::atomic<int> answered{0};
  std::atomic<int> failed{0};
  std::atomic<long long> slowest{0};
  std::vector<Future<void>> calls;
  while (!input_ends_within(10)) {
    const long long began = now_in_us();
    calls.push_back(
        node.call<int(int, int)>(callee, "add", 1, 2).then([&, began](const Result<int>& sum) {
          if (sum) {
            ++answered;
            slowest = std::max<long long>(slowest, (now_in_us() - began) / 1000);
          } else if (++failed == 1) {
            std::cout << "failed: " + sum.message() << std::endl;
          }
        }));
    if (calls.size() == 1) {
      calls.back().wait();
      std::cout << "calling" << std::endl;
    }
  }
  for (const Future<void>& call : calls)
    call.wait();
  std::cout << "answered " << answered << std::endl;
  std::cout << "slowest " << slowest << std::endl;
  std::cout << "failed " << failed << std::endl;
}

// std::endl: the test reads line by line.
void run(const std::map<std::string, std::string>& options) {
  const auto number = [&](const std::string& key, const char* otherwise) {
    return std::stoi(value_of(options, key, otherwise));
  };
  NodeOptions how;
  how.name = value_of(options, "name", "");
  how.join = value_of(options, "join", "");
  how.rank = number("rank", "0");
  how.world_size = number("world", "0");
  how.join_timeout = std::chrono::milliseconds(number("timeout", "20000"));
  how.liveness.dead_after = std::chrono::milliseconds(number("dead_after", "5000"));
  how.liveness.ping_after = how.liveness.dead_after / 5;
  const std::string transport = value_of(options, "transport", "");
  if (transport == "tcp") how.transports = {tcp_transport()};
  if (transport == "unix") how.transports = {unix_transport()};
  how.num_worker_threads = 2;

  std::cout << "loaded " << now_in_us() << std::endl;
  std::vector<Promise<int>> never;
  const Node node(how);
  node.on_membership([](const MembershipChange& change) {
    std::cout << (change.joined ? "has joined " : "is lost ") + change.peer.name + " at " +
                     std::to_string(now_in_us())
              << std::endl;
  });
  node.expose("add", [](int a, int b) { return a + b; });
  node.expose("exit", [] { std::exit(3); });
  node.expose("abort", [] { std::abort(); });
  node.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  node.expose("compute", [](int ms) {
    const long long end = now_in_us() + ms * 1000LL;
    while (now_in_us() < end) {
    }
  });
  std::vector<Bytes> kept;
  node.expose("keep",
              [&never, &kept](Bytes bytes) {
                kept.push_back(std::move(bytes));
                return never.emplace_back().get_future();
              },
              {.short_handler = true});
  node.expose("never",
              [&never] {
                never.emplace_back();
                return never.back().get_future();
              },
              {.short_handler = true});
  std::cout << "joined " << now_in_us() << std::endl;
  std::cout << "address " << node.address() << std::endl;

  int right = 0;
  for (const PeerInfo& peer : node.peers())
    right += node.call<int(int, int)>(peer.name, "add", 1, 2).get() == 3 ? 1 : 0;
  std::cout << "called " << right << std::endl;

  if (const std::string callee = value_of(options, "calls", ""); !callee.empty()) {
    call_until_input_ends(node, callee);
  } else {
    (void)input_ends_within(-1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equal = word.find('=');
    if (equal == std::string::npos) {
      std::cerr << "usage: serving_node KEY=VALUE...\n";
      return 2;
    }
    options[word.substr(0, equal)] = word.substr(equal + 1);
  }
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "failed: " << error.what() << '\n';
    return 1;
  }
  std::cout << "ended" << std::endl;
  return 0;
}
