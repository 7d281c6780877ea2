#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "batchrpc/batchrpc.hpp"

// A node as a process of its own, for tests that kill, stop or part it. It lives until its input
// ends.
//
//   serving_node KEY=VALUE...   name, join, rank, world, dead_after (ms), timeout (ms)

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
  how.dead_after = std::chrono::milliseconds(number("dead_after", "5000"));
  how.ping_after = how.dead_after / 5;
  how.num_worker_threads = 2;

  std::cout << "loaded " << now_in_us() << std::endl;
  std::vector<Promise<int>> never;
  const Node node(how);
  node.on_membership([](const MembershipChange& change) {
    std::cout << (change.joined ? "has joined " : "is lost ") << change.peer.name << std::endl;
  });
  node.expose("add", [](int a, int b) { return a + b; });
  node.expose("size", [](const Bytes& bytes) { return bytes.size(); });
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

  std::array<char, 64> input{};
  while (::read(STDIN_FILENO, input.data(), input.size()) > 0) {
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
