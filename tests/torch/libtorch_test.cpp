#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <string>

namespace batchrpc {
namespace libtorch_test {

using Catch::Matchers::Contains;

TEST_CASE("the C++ library of a program is its own, not the parts of one that LibTorch exports") {
  // std::filesystem::remove_all(const path&, std::error_code&): PyTorch 2.11 for CUDA has one that
  // crashes.
  void* const found =
      dlsym(RTLD_DEFAULT, "_ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code");
  REQUIRE(found != nullptr);
  Dl_info where{};
  REQUIRE(dladdr(found, &where) != 0);
  CHECK_THAT(std::string(where.dli_fname), Contains("libstdc++"));
}

}  // namespace libtorch_test
}  // namespace batchrpc
