#include "base/thread_place.hpp"

#include <barrier>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

namespace batchrpc::detail {
namespace thread_place_test {

std::vector<std::size_t> places_of(std::size_t threads) {
  std::barrier all_have_one(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::size_t> places(threads);
  std::vector<std::thread> running;
  for (std::size_t& place : places) {
    running.emplace_back([&] {
      place = thread_place();
      all_have_one.arrive_and_wait();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  return places;
}

TEST_CASE("threads that live at once have places of their own, and give them back", "[threads]") {
  const std::size_t own = thread_place();
  for (int round = 0; round < 20; ++round) {
    const std::vector<std::size_t> places = places_of(8);
    const std::set<std::size_t> different(places.begin(), places.end());
    CHECK(different.size() == 8);
    CHECK(*different.rbegin() < kThreadPlaces);
    CHECK(different.count(own) == 0);  // this thread lives on
  }
}

TEST_CASE("more threads than there are places for have none", "[threads]") {
  const std::vector<std::size_t> places = places_of(2 * kThreadPlaces);
  std::multiset<std::size_t> all(places.begin(), places.end());
  CHECK(all.count(kThreadPlaces) >= kThreadPlaces);
  all.erase(kThreadPlaces);
  CHECK(all.size() == std::set<std::size_t>(all.begin(), all.end()).size());
  CHECK(places_of(1).front() < kThreadPlaces);
}

TEST_CASE("what a thread wrote by its place is seen by the thread that has it next", "[threads]") {
  std::vector<std::uint64_t> counts(kThreadPlaces);  // plain: under the thread sanitizer, too
  constexpr int kThreads = 200;
  std::vector<std::thread> running;
  for (int i = 0; i < kThreads; ++i) {
    running.emplace_back([&] {
      if (thread_place() < kThreadPlaces) ++counts[thread_place()];
    });
    if (running.size() < 8) continue;
    running.front().join();
    running.erase(running.begin());
  }
  for (std::thread& thread : running)
    thread.join();
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts)
    sum += count;
  CHECK(sum == kThreads);
}

}  // namespace thread_place_test
}  // namespace batchrpc::detail
