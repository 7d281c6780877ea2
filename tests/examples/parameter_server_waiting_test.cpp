#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "parameter_server/waiting_notice.hpp"

namespace batchrpc_examples {
namespace parameter_server_waiting_test {

using namespace std::chrono_literals;

TEST_CASE("Who waits for long says so once") {
  std::promise<std::string> told;
  const WaitingNotice notice("trainer1 waits for server0", 1ms,
                             [&](const std::string& text) { told.set_value(text); });
  CHECK(told.get_future().get() == "trainer1 waits for server0");
}

TEST_CASE("Who does not wait for long says nothing, and ends at once") {
  std::vector<std::string> told;
  const auto begin = std::chrono::steady_clock::now();
  {
    const WaitingNotice notice("x", 1h, [&](const std::string& text) { told.push_back(text); });
  }
  CHECK(told.empty());
  CHECK(std::chrono::steady_clock::now() - begin < 1min);
}

TEST_CASE("Of processes that were launched together, and of server 0, none says that it waits") {
  ParameterServerOptions options;
  options.rank = 2;
  CHECK(notice_of_waiting(options, "server0"));
  options.launched = true;
  CHECK_FALSE(notice_of_waiting(options, "server0"));
  options = {};
  options.rank = 0;
  CHECK_FALSE(notice_of_waiting(options, "server0"));
}

}  // namespace parameter_server_waiting_test
}  // namespace batchrpc_examples
