#include <batchrpc/base/version.hpp>

#include <string>

#include <catch2/catch.hpp>

TEST_CASE("The linked library's version is the headers' version") {
  const std::string headers = std::to_string(BATCHRPC_VERSION_MAJOR) + "." +
                              std::to_string(BATCHRPC_VERSION_MINOR) + "." +
                              std::to_string(BATCHRPC_VERSION_PATCH);
  CHECK(batchrpc::version() == headers);
}
