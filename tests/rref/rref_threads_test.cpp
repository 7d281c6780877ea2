#include <catch2/catch.hpp>
#include <latch>
#include <thread>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

// Objects behind handles on nodes with threads of their own.

namespace objects {

/// Notices when two of its methods run at once.
class Alone {
 public:
  Alone() { ++alive; }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() { --alive; }
  int enter() {
    const bool alone = !std::exchange(busy_, true);
    std::this_thread::yield();
    busy_ = false;
    if (!alone) ++collisions;
    return ++calls_;
  }

  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> collisions{0};

 private:
  bool busy_ = false;
  int calls_ = 0;
};

}  // namespace objects

namespace batchrpc {
namespace rref_threads_test {

using namespace std::chrono_literals;
using objects::Alone;
using test::RealPair;

/// Waits until no object is alive; false when that takes too long. Nothing tells of the end of an
/// object, so this asks the owner again and again, whose workers destroy it.
bool all_gone(const Node& owner) {
  for (int i = 0; i < 100'000 && Alone::alive != 0; ++i)
    owner.call<void()>(owner.name(), "nothing").get();
  return Alone::alive == 0;
}

void expose_alone(const Node& node) {
  node.expose_class<Alone()>();
  node.expose<&Alone::enter>();
  node.expose("nothing", [] {});
}

TEST_CASE("an object runs one method at a time on four workers, for four callers", "[threads]") {
  Alone::alive = Alone::collisions = 0;
  const RealPair pair(4);
  expose_alone(pair.b);
  {
    const RRef<Alone> shared = pair.a.create<Alone>("b");
    std::vector<std::thread> callers;
    std::latch together(4);
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&, mine = shared] {
        together.arrive_and_wait();
        std::vector<Future<int>> calls;
        for (int call = 0; call < 250; ++call)
          calls.push_back(mine.call<&Alone::enter>());
        for (auto& call : calls)
          call.get();
      });
    }
    for (auto& caller : callers)
      caller.join();
    CHECK(shared.call<&Alone::enter>().get() == 1001);
  }
  CHECK(Alone::collisions == 0);
  CHECK(all_gone(pair.b));
}

TEST_CASE("threads create, copy, send and drop handles of one node at once", "[threads]") {
  Alone::alive = Alone::collisions = 0;
  const RealPair pair(2);
  const Node c(test::real_joining(pair.a, "c", 2));
  expose_alone(pair.b);
  const auto use = [](const RRef<Alone>& handle) { return handle.call<&Alone::enter>(); };
  c.expose("use", use);
  pair.b.expose("use", use);
  std::vector<std::thread> threads;
  std::latch together(4);
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      together.arrive_and_wait();  // the first use of objects is one of them
      for (int round = 0; round < 50; ++round) {
        Future<int> by_third;
        Future<int> by_owner;
        {
          const RRef<Alone> handle = pair.a.create<Alone>("b");
          const RRef<Alone> copy = handle;
          by_third = pair.a.call<int(RRef<Alone>)>("c", "use", copy);
          by_owner = pair.a.call<int(RRef<Alone>)>("b", "use", handle);
        }
        if (by_third.get() + by_owner.get() != 3) ++wrong;
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(all_gone(pair.b));
}

TEST_CASE("a node with threads ends while its objects are being called", "[threads]") {
  Alone::alive = Alone::collisions = 0;
  for (int round = 0; round < 20; ++round) {
    RealPair pair(2);
    expose_alone(pair.b);
    const RRef<Alone> handle = pair.a.create<Alone>("b");
    CHECK(handle.call<&Alone::enter>().get() == 1);
    std::vector<Future<int>> calls;
    for (int i = 0; i < 200; ++i)
      calls.push_back(handle.call<&Alone::enter>());
    pair.b.shutdown(0s);
    for (auto& call : calls)
      (void)test::outcome(std::move(call));
    CHECK(Alone::alive == 0);
  }
  CHECK(Alone::collisions == 0);
}

}  // namespace rref_threads_test
}  // namespace batchrpc
