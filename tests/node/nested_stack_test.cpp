// Handlers with large frames that wait: others run on top of them.
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/stack_use.hpp"
#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

namespace nested_stack {

const batchrpc::Node* server = nullptr;

int weight(int number) { return number + 1; }

/// Has a frame of 110 KiB while it asks back.
int act(int number) {
  std::array<volatile char, std::size_t{110} * 1024> frame;
  for (std::size_t i = 0; i < frame.size(); i += 512)
    frame[i] = static_cast<char>(number);
  const int answer = server->call<&weight>("b", number).get();
  return frame[512] == static_cast<char>(number) ? answer : -1;
}

}  // namespace nested_stack

namespace batchrpc {
namespace nested_stack_test {

TEST_CASE("handlers with large frames that wait are not nested beyond half of the stack",
          "[threads]") {
  const test::RealPair pair(2);
  nested_stack::server = &pair.a;
  pair.a.expose<&nested_stack::act>();
  pair.b.expose<&nested_stack::weight>();
  std::vector<Future<int>> answers;
  for (int i = 0; i < 300; ++i)
    answers.push_back(pair.b.call<&nested_stack::act>("a", i));
  int wrong = 0;
  for (int i = 0; i < 300; ++i)
    wrong += std::move(answers[static_cast<std::size_t>(i)]).get() == i + 1 ? 0 : 1;
  CHECK(wrong == 0);
}

/// The answer once `bytes` of the stack below `top` are used.
bool is_used_at(std::uintptr_t top, std::size_t bytes) {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  std::array<volatile char, 4096> frame;
  frame[0] = 1;
  const bool is_used = top - here >= bytes ? is_half_of_stack_used() : is_used_at(top, bytes);
  return is_used && frame[0] == 1;
}
bool is_used_after(std::size_t bytes) {
  return is_used_at(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), bytes);
}

TEST_CASE("a thread knows when half of its stack is used", "[threads]") {
  std::thread([] {
    CHECK_FALSE(is_half_of_stack_used());
    CHECK_FALSE(is_used_after(std::size_t{64} * 1024));
    pthread_attr_t attributes;
    REQUIRE(::pthread_getattr_np(::pthread_self(), &attributes) == 0);
    std::size_t size = 0;
    REQUIRE(::pthread_attr_getstacksize(&attributes, &size) == 0);
    ::pthread_attr_destroy(&attributes);
    CHECK(is_used_after(size / 2));
    CHECK_FALSE(is_half_of_stack_used());
  }).join();
}

}  // namespace nested_stack_test
}  // namespace batchrpc
