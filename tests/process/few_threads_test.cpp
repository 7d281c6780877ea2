#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "child.hpp"

// What becomes of a program whose user may start few threads (tests/helpers/few_threads.cpp).

namespace batchrpc {
namespace few_threads_test {

TEST_CASE("where the system starts no more threads there is an error that says what to do") {
  if (::geteuid() != 0) {
    WARN("left out: root, who can become a user without other threads");
    return;
  }
  for (const std::string what : {"node", "lanes", "end"}) {
    bool was_refused = false;
    for (int limit = 1; limit <= 8; ++limit) {
      test::Child child({"few_threads", std::to_string(limit), what});
      const int end = child.wait();
      const std::string output = child.output();
      CAPTURE(what, limit, output);
      CHECK(end == 0);
      const bool reached = output.find("reached") != std::string::npos;
      if (reached) continue;
      was_refused = true;
      CHECK_THAT(output, Catch::Contains("cannot start a thread for a") ||
                             Catch::Contains("cannot start a thread for the I/O of a node"));
      CHECK_THAT(output, Catch::Contains("ulimit -u"));
    }
    CHECK(was_refused);
  }
}

}  // namespace few_threads_test
}  // namespace batchrpc
