#include <cstdint>

#include "fuzz/targets.hpp"

// What libFuzzer calls. BATCHRPC_FUZZ_TARGET: the program's target.

extern "C" [[gnu::visibility("default")]] int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                     std::size_t size);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  batchrpc::fuzz::BATCHRPC_FUZZ_TARGET(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  return 0;
}
