#include <malloc.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "child.hpp"
#include "node/real_nodes.hpp"
#include "sanitizers.hpp"

// Promise 5 of docs/reliability.md between processes: what they have in memory.

namespace batchrpc {
namespace credit_process_test {

using namespace std::chrono_literals;
using test::Child;
using test::outcome;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kCredit = 64 * kMiB;
constexpr std::size_t kOffered = 10 * 1024 * kMiB;

// Sanitizers have memory of their own.
constexpr bool kMeasures = !BATCHRPC_TEST_ASAN && !BATCHRPC_TEST_TSAN;

/// VmRSS of a process, in bytes.
std::size_t resident(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  }
  throw std::runtime_error("no VmRSS of process " + std::to_string(pid));
}

Bytes filled() {
  Bytes bytes = Bytes::allocate(kMiB);
  std::memset(bytes.mutable_data(), 1, kMiB);
  return bytes;
}

/// A node with little credit, and a process that it calls.
struct Offering {
  Offering()
      : node([] {
          NodeOptions options = test::real_root("root", 1);
          options.logging.level = LogLevel::off;
          options.liveness.dead_after = 300s;  // nothing here waits for that
          options.limits.max_outstanding_bytes = kCredit;
          return options;
        }()),
        peer([this] {
          node.expose("add", [](int a, int b) { return a + b; });
          return Child::Words{"serving_node", "name=peer", "rank=-1", "join=" + node.address(),
                              "dead_after=300000"};
        }()) {
    peer.line("called");
    // Memory that the allocator keeps when it is freed is not what is counted here.
    ::mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    ::malloc_trim(0);
  }

  /// Offers 10 GiB in calls of `function`. `buffer` makes a payload.
  template <class Buffer>
  void offer(const std::string& function, const Buffer& buffer) {
    for (std::size_t offered = 0; offered < kOffered; offered += kMiB) {
      Future<int> call = node.call<int(Bytes)>("peer", function, buffer());
      if (call.ready()) {
        ++refused;
        CHECK(outcome(std::move(call)).code() == ErrorCode::overloaded);
      } else {
        calls.push_back(std::move(call));
      }
      if (offered % (256 * kMiB) == 0) measure();
    }
    measure();
  }
  void measure() {
    most_here = std::max(most_here, resident(::getpid()));
    most_there = std::max(most_there, resident(peer.pid()));
  }
  void check() const {
    INFO("at most " << most_here / 1024 << " KiB here, " << most_there / 1024 << " KiB there, "
                    << calls.size() << " calls taken, " << refused << " refused");
    if (kMeasures) {
      CHECK(most_here <= kCredit + 16 * kMiB);
      CHECK(most_there <= kCredit + 16 * kMiB);
    }
    CHECK(calls.size() < 64);
    CHECK(calls.size() + refused == kOffered / kMiB);
  }

  Node node;
  Child peer;
  std::vector<Future<int>> calls;
  std::size_t refused = 0;
  std::size_t most_here = 0;
  std::size_t most_there = 0;
};

TEST_CASE("promise 5: a stopped process that is offered 10 GiB takes the credit's memory here") {
  Offering offering;
  offering.peer.signal(SIGSTOP);
  SECTION("in one buffer") {
    const Bytes shared = filled();
    offering.offer("keep", [&] { return shared; });
  }
  SECTION("in fresh buffers") { offering.offer("keep", filled); }
  offering.check();
}

TEST_CASE(
    "promise 5: a process that never answers and is offered 10 GiB holds the credit's memory") {
  Offering offering;
  SECTION("in one buffer") {
    const Bytes shared = filled();
    offering.offer("keep", [&] { return shared; });
  }
  SECTION("in fresh buffers") { offering.offer("keep", filled); }
  offering.check();
}

TEST_CASE("promise 5: 512 MiB get through to a process that is stopped for a while, by waiting") {
  Offering offering;
  offering.peer.signal(SIGSTOP);
  std::vector<Future<std::size_t>> sizes;
  const Bytes shared = filled();
  Future<void> waits = offering.node.peer("peer").wait_for_credit(kMiB);
  while (waits.ready()) {
    sizes.push_back(offering.node.call<std::size_t(Bytes)>("peer", "size", shared));
    waits = offering.node.peer("peer").wait_for_credit(kMiB);
  }
  CHECK(sizes.size() == 63);
  offering.peer.signal(SIGCONT);
  while (sizes.size() < 512) {
    std::move(waits).get();
    sizes.push_back(offering.node.call<std::size_t(Bytes)>("peer", "size", shared));
    waits = offering.node.peer("peer").wait_for_credit(kMiB);
  }
  for (Future<std::size_t>& size : sizes)
    CHECK(std::move(size).get() == kMiB);
}

}  // namespace credit_process_test
}  // namespace batchrpc
