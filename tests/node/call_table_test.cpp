#include "session/call_table.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace batchrpc {
namespace call_table_test {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1h};

struct Indifferent final : detail::ReplyReceiver {
  void receive(detail::Reply& /*reply*/) noexcept override {}
};

PendingCall call_due(Duration after, std::uint32_t function = 0) {
  static Indifferent receiver;
  PendingCall call;
  call.handler = detail::ReplyHandler(receiver);
  call.deadline = kStart + after;
  call.function = function;
  return call;
}

TEST_CASE("a call is found by its id until it is taken, once") {
  CallTable table;
  const std::uint64_t id = table.add(call_due(1s, 7));
  CHECK(id != 0);
  CHECK(table.size() == 1);
  REQUIRE(table.find(id) != nullptr);
  CHECK(table.find(id)->function == 7);
  const auto taken = table.take(id);
  REQUIRE(taken);
  CHECK(taken->function == 7);
  CHECK(table.size() == 0);
  CHECK_FALSE(table.take(id));
  CHECK(table.find(id) == nullptr);
}

TEST_CASE("ids that were never given out are not found") {
  CallTable table;
  const std::uint64_t id = table.add(call_due(1s));
  for (const std::uint64_t wrong : {std::uint64_t{0}, id + 1, id + (std::uint64_t{1} << 32),
                                    ~std::uint64_t{0}, std::uint64_t{0xffffffff}}) {
    CHECK_FALSE(table.take(wrong));
  }
  CHECK(table.size() == 1);
}

TEST_CASE("a slot that is used again has another id, so that a late reply meets nobody") {
  CallTable table;
  const std::uint64_t first = table.add(call_due(1s));
  (void)table.take(first);
  const std::uint64_t second = table.add(call_due(1s));
  CHECK(first != second);
  CHECK_FALSE(table.take(first));
  CHECK(table.take(second));
}

TEST_CASE("calls expire at their deadlines, and the earliest that is left is known") {
  CallTable table;
  table.add(call_due(3s, 3));
  table.add(call_due(1s, 1));
  table.add(call_due(2s, 2));
  CHECK(table.earliest_deadline() == kStart + 1s);
  CHECK(table.take_expired(kStart + 999ms).empty());
  const auto expired = table.take_expired(kStart + 2s);
  CHECK(expired.size() == 2);
  CHECK(table.size() == 1);
  CHECK(table.earliest_deadline() == kStart + 3s);
  CHECK(table.take_expired(kStart + 1h).size() == 1);
  CHECK(table.earliest_deadline() == TimePoint::max());
}

TEST_CASE("a call without deadline never expires") {
  CallTable table;
  PendingCall call = call_due(1s);
  call.deadline = TimePoint::max();
  table.add(std::move(call));
  CHECK(table.earliest_deadline() == TimePoint::max());
  CHECK(table.take_expired(kStart + 100h).empty());
  CHECK(table.take_all().size() == 1);
}

TEST_CASE("after all calls were taken the table is empty") {
  CallTable table;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 100; ++i)
    ids.push_back(table.add(call_due(1s)));
  CHECK(table.take_all().size() == 100);
  CHECK(table.size() == 0);
  CHECK(table.earliest_deadline() == TimePoint::max());
  for (const std::uint64_t id : ids)
    CHECK_FALSE(table.take(id));
}

TEST_CASE("random adds, takes and expiries agree with a simple model") {
  std::mt19937_64 random(3);
  CallTable table;
  std::map<std::uint64_t, TimePoint> model;
  TimePoint now = kStart;
  for (int step = 0; step < 20000; ++step) {
    const auto what = random() % 10;
    if (what < 5) {
      PendingCall call = call_due(0s);
      call.deadline = now + std::chrono::milliseconds(random() % 1000);
      const TimePoint deadline = call.deadline;
      const auto [at, added] = model.emplace(table.add(std::move(call)), deadline);
      CHECK(added);
    } else if (what < 8 && !model.empty()) {
      auto at = model.begin();
      std::advance(at,
                   static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(model.size(), 20)));
      CHECK(table.take(at->first).has_value());
      model.erase(at);
    } else if (what == 8) {
      now += std::chrono::milliseconds(random() % 100);
      const auto expired = table.take_expired(now);
      const auto due =
          std::erase_if(model, [now](const auto& entry) { return entry.second <= now; });
      CHECK(expired.size() == due);
    }
    CHECK(table.size() == model.size());
    for (const auto& [id, deadline] : model) {
      CHECK(table.earliest_deadline() <= deadline);
      if (random() % 4 != 0) break;
    }
  }
}

TEST_CASE("a table that has held many calls at once keeps only their slots") {
  CallTable table;
  std::vector<std::uint64_t> ids;
  for (int round = 0; round < 100; ++round) {
    ids.clear();
    for (int i = 0; i < 1000; ++i)
      ids.push_back(table.add(call_due(1h)));
    for (const std::uint64_t id : ids)
      CHECK(table.take(id).has_value());
    CHECK((ids.back() & 0xffffffff) < 1000);
  }
  // 512 bytes a pending call is the promise; a slot is most of it.
  CHECK(sizeof(PendingCall) <= 192);
}

TEST_CASE("the memory of a burst of calls is given back, and their ids do not come again") {
  CallTable table;
  std::set<std::uint64_t> seen;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 10'000; ++i)
      ids.push_back(table.add(call_due(1h)));
    bool is_new = true;
    for (const std::uint64_t id : ids)
      is_new = seen.insert(id).second && table.take(id).has_value() && is_new;
    CHECK(is_new);
    CHECK(table.size() == 0);
    CHECK_FALSE(table.take(ids.front()));
  }
  CHECK((table.add(call_due(1h)) & 0xffffffff) == 0);
}

}  // namespace call_table_test
}  // namespace batchrpc
