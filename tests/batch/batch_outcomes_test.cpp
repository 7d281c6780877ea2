#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// Every row has an outcome and is counted by it, whatever throws on its way.
namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using test::outcome;

struct Strict {
  Strict(int x) : value(x) {  // NOLINT: converted from what a handler returns for all
    if (x < 0) throw std::domain_error("strict");
  }
  int value;
};

TEST_CASE("a result for all that cannot be converted is its rows' error") {
  test::VirtualWorld world;
  const Node node = world.root();
  const auto fails = [&](const Batcher<Strict(int)>& batcher) {
    detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
    auto row = batcher(1);
    world.run_for(0s);
    CHECK(outcome(std::move(row)).message() == "strict");
    CHECK(batcher.statistics().failed == 1);
    CHECK(batcher.statistics().answered == 0);
  };
  fails(Batcher<Strict(int)>({}, [](const std::vector<int>&) { return ForAll<int>(-1); }));
  fails(Batcher<Strict(int)>(
      {}, [](const std::vector<int>&) { return make_ready_future(ForAll<int>(-1)); }));

  struct Sum {
    void accumulate(int /*x*/) {}
    int finish() { return -1; }
  };
  struct LaterSum {
    void accumulate(int /*x*/) {}
    Future<int> finish() { return make_ready_future(-1); }
  };
  fails(Batcher<Strict(int)>({}, reduce(Sum{})));
  fails(Batcher<Strict(int)>({}, reduce(LaterSum{})));
}

TEST_CASE("the other half runs when the result of one cannot be converted") {
  test::VirtualWorld world;
  const Node node = world.root();
  const Batcher<Strict(int)> batcher({.isolate = Isolate::bisect}, [](const std::vector<int>& xs) {
    if (xs.size() == 4) throw std::runtime_error("not all four");
    return make_ready_future(ForAll<int>(xs[0] == 1 ? -1 : 7));
  });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  std::vector<Future<Strict>> rows;
  for (int x = 1; x <= 4; ++x)
    rows.push_back(batcher(x));
  world.run_for(0s);
  CHECK(outcome(std::move(rows[0])).message() == "strict");
  CHECK(outcome(std::move(rows[1])).message() == "strict");
  CHECK(outcome(std::move(rows[2])));
  CHECK(outcome(std::move(rows[3])));
  CHECK(batcher.statistics().answered == 2);
  CHECK(batcher.statistics().failed == 2);
}

struct Uncopied {
  explicit Uncopied(int x) : value(x) {}
  Uncopied(const Uncopied& other) : value(other.value) { throw std::domain_error("copied"); }
  Uncopied(Uncopied&&) = default;
  Uncopied& operator=(Uncopied&&) = default;
  int value;
};

TEST_CASE("a row whose result cannot be copied for it was not answered") {
  test::VirtualWorld world;
  const Node node = world.root();
  const Batcher<Uncopied(int)> batcher({},
                                       [](const std::vector<int>&) { return ForAll(Uncopied(1)); });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto row = batcher(1);
  world.run_for(0s);
  CHECK(outcome(std::move(row)).message() == "copied");
  CHECK(batcher.statistics().answered == 0);
  CHECK(batcher.statistics().failed == 1);
}

/// Throws at the nth copy or move from when it is armed.
struct Thrower {
  explicit Thrower(int x) : value(x) {}
  Thrower(const Thrower& other) : value(other.value) { count(); }
  Thrower(Thrower&& other) : value(other.value) { count(); }  // NOLINT: it is to throw
  Thrower& operator=(const Thrower&) = default;
  static void count() {
    if (left > 0 && --left == 0) throw std::domain_error("moved");
  }
  int value;
  static inline int left = 0;
};

using Throwers = std::vector<Thrower>;

Batcher<Thrower(Thrower)> thrower_batcher(const BatchOptions& options, int form) {
  using B = Batcher<Thrower(Thrower)>;
  if (form == 0) return B(options, [](Throwers xs) { return xs; });
  if (form == 1) {
    return B(options, [](const Throwers& xs) { return make_ready_future(Throwers(xs)); });
  }
  if (form == 2) return B(options, [](const Throwers& xs) { return ForAll<Thrower>(xs[0]); });
  if (form == 3) {
    return B(options, [](const Throwers& xs) { return make_ready_future(ForAll<Thrower>(xs[0])); });
  }
  return B(options, [](const Throwers& xs) {
    std::vector<Result<Thrower>> results;
    for (const Thrower& x : xs)
      results.emplace_back(x);
    return results;
  });
}

TEST_CASE("rows and results may throw whenever they are copied or moved") {
  for (const Isolate isolate : {Isolate::none, Isolate::bisect}) {
    for (const int form : {0, 1, 2, 3, 4}) {
      for (int at = 1; at < 60; ++at) {
        CAPTURE(isolate, form, at);
        test::VirtualWorld world;
        const Node node = world.root();
        const auto batcher = thrower_batcher(
            {.max_size = 8, .min_size = 4, .preferred_sizes = {8}, .isolate = isolate}, form);
        detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
        batcher.pause();
        auto one = batcher(Thrower(1));
        auto other = batcher(Thrower(2));
        Throwers rows;
        rows.reserve(2);
        rows.emplace_back(3);
        rows.emplace_back(4);
        auto many = batcher.many()(std::move(rows));
        Thrower::left = at;
        batcher.resume();
        world.run_for(0s);
        Thrower::left = 0;
        const auto is_good = [](const auto& future) {
          return future.ready() && (future.result() || future.result().message() == "moved");
        };
        CHECK(is_good(one));
        CHECK(is_good(other));
        CHECK(is_good(many));
        CHECK(batcher.statistics().answered + batcher.statistics().failed == 4);
        CHECK(batcher.statistics().running == 0);
      }
    }
  }
}

/// A row of a kind, which cannot always be described.
struct Odd {
  int kind = 0;
};

}  // namespace

template <>
struct BatchTraits<Odd> {
  using Stacked = std::vector<Odd>;
  class Builder {
   public:
    Builder(std::size_t /*rows*/, const detail::Stacking& /*how*/) {}
    void add(Odd&& row) { rows_.push_back(row); }
    void add_all(Stacked&& rows) { rows_.insert(rows_.end(), rows.begin(), rows.end()); }
    Stacked finish(std::size_t /*padding*/) { return std::move(rows_); }

   private:
    Stacked rows_;
  };
  static std::size_t rows(const Stacked& stacked) { return stacked.size(); }
  static const Odd& row(const Stacked& stacked, std::size_t i) { return stacked[i]; }
  static Stacked repeat(const Odd& value, std::size_t rows) { return Stacked(rows, value); }
  static std::size_t bytes(const Odd& /*row*/) { return 4; }
  static std::size_t bytes_of_all(const Stacked& rows) { return 4 * rows.size(); }
  static void append_kind(const Odd& row, std::string& kind) { kind += std::to_string(row.kind); }
  static void append_kind_of_all(const Stacked& rows, std::string& kind) {
    append_kind(rows[0], kind);
  }
  static std::string describe(const Odd& row) {
    if (row.kind == 2) throw std::runtime_error("it cannot be described");
    return "odd";
  }
  static std::string describe(const Stacked& rows) { return describe(rows[0]); }
};

namespace {

TEST_CASE("a row that goes with no other and cannot be described fails alone") {
  test::VirtualWorld world;
  const Node node = world.root();
  const Batcher<int(Odd)> batcher(
      {.min_size = 3}, [](const std::vector<Odd>& rows) { return std::vector<int>(rows.size()); },
      {.key = [](const Odd&) { return 0; }});
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto first = batcher(Odd{1});
  auto second = batcher(Odd{1});
  auto misfit = batcher(Odd{2});
  world.run_for(0s);
  CHECK(outcome(std::move(first)));
  CHECK(outcome(std::move(second)));
  CHECK(outcome(std::move(misfit)).message() == "it cannot be described");
  CHECK(batcher.statistics().answered == 2);
  CHECK(batcher.statistics().invalid == 1);
}

TEST_CASE("halves of an asynchronous handler run where the handler does") {
  test::VirtualWorld world;
  const Node node = world.root();
  const auto tasks = std::make_shared<test::KeptTasks>();
  std::deque<Promise<std::vector<int>>> running;
  int elsewhere = 0;
  std::optional<Batcher<int(int)>> batcher;
  batcher.emplace(BatchOptions{.min_size = 2, .isolate = Isolate::bisect, .executor = tasks},
                  [&](const std::vector<int>&) {
                    if (!tasks->runs) ++elsewhere;
                    return running.emplace_back().get_future();
                  });
  detail::HostedAccess::exposed_on(*batcher, detail::NodeAccess::host(node));
  auto first = (*batcher)(1);
  auto second = (*batcher)(2);
  world.run_for(0s);
  tasks->run_next();
  REQUIRE(running.size() == 1);
  running[0].set_error(std::make_exception_ptr(std::domain_error("poison")));
  REQUIRE(tasks->waiting.size() == 1);
  SECTION("one after the other") {
    tasks->run_next();
    REQUIRE(running.size() == 2);
    running[1].set_value({1});
    CHECK(first.get() == 1);
    tasks->run_next();
    REQUIRE(running.size() == 3);
    running[2].set_value({2});
    CHECK(second.get() == 2);
  }
  SECTION("and not at all when that is gone") {
    tasks->waiting.clear();
    CHECK(outcome(std::move(first)).code() == ErrorCode::shut_down);
    CHECK(outcome(std::move(second)).code() == ErrorCode::shut_down);
  }
  CHECK(elsewhere == 0);
}

}  // namespace
}  // namespace batchrpc
