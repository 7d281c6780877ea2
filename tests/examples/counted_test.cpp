#include "common/counted.hpp"

#include <catch2/catch.hpp>

namespace batchrpc_examples {
namespace counted_test {

TEST_CASE("one of a kind is counted without an s") {
  CHECK(counted(0, "trainer") == "0 trainers");
  CHECK(counted(1, "trainer") == "1 trainer");
  CHECK(counted(2, "trainer") == "2 trainers");
}

}  // namespace counted_test
}  // namespace batchrpc_examples
