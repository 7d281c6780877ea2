#include "transport/end_in_turns.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "batchrpc/transport/virtual_loop.hpp"

namespace batchrpc {
namespace end_in_turns_test {

// Ends `count` things, one in each turn, and writes a letter for each.
auto work(int count, const std::shared_ptr<std::string>& log) {
  return [left = count, log]() mutable {
    if (left > 0) *log += 'w';
    return --left <= 0;
  };
}

TEST_CASE("what ends in turns of the loop lets other tasks run between them") {
  const auto loop = std::make_shared<VirtualLoop>();
  const auto log = std::make_shared<std::string>();
  loop->post([&] {
    detail::end_in_turns(*loop, work(3, log));
    *log += 'a';
    loop->post([&] { *log += 'b'; });
  });
  CHECK(loop->run_until_idle());
  CHECK(*log == "wawbw");
}

TEST_CASE("without a thread that drives the loop everything ends at once") {
  const auto log = std::make_shared<std::string>();
  VirtualLoop loop;
  detail::end_in_turns(loop, work(3, log));
  CHECK(*log == "www");
}

TEST_CASE("when the loop ends the rest ends with it, once") {
  const auto log = std::make_shared<std::string>();
  {
    const auto loop = std::make_shared<VirtualLoop>();
    loop->post([&] { detail::end_in_turns(*loop, work(4, log)); });
    loop->run_until([&] { return !log->empty(); });
    CHECK(*log == "w");
  }
  CHECK(*log == "wwww");
}

}  // namespace end_in_turns_test
}  // namespace batchrpc
