#include "common/free_port.hpp"

#include <catch2/catch.hpp>

namespace batchrpc_examples {
namespace free_port_test {

TEST_CASE("a free port is found again and again") {
  for (int i = 0; i < 100; ++i)
    CHECK(free_port() >= 1024);
}

}  // namespace free_port_test
}  // namespace batchrpc_examples
