#include <catch2/catch.hpp>
#include <string>

#include "child.hpp"
#include "sanitizers.hpp"

// Programs that end with nodes alive and calls in flight (tests/helpers/ending_program.cpp): their
// exit code is the one that they gave, so nothing crashed, and nothing hung.

namespace batchrpc {
namespace ending_test {

using test::Child;

int end_of(const std::string& way) {
  Child child({"ending_program", way});
  const int end = child.wait();
  UNSCOPED_INFO(way << ": " << child.output());
  return end;
}

TEST_CASE("a program may end with nodes, futures and handles of static life time, in any order") {
  CHECK(end_of("return") == 3);
}

TEST_CASE("exit() with calls in flight ends the program, on whichever thread it is called") {
  for (int round = 0; round < 5; ++round) {
    CHECK(end_of("exit") == 3);
    CHECK(end_of("exit_on_another_thread") == 3);
    CHECK(end_of("exit_in_a_handler") == 3);
    CHECK(end_of("exit_in_a_callback") == 3);
  }
}

TEST_CASE("exit() while a handler does not return ends the program") {
  CHECK(end_of("exit_while_a_handler_sleeps") == 3);
}

// The address sanitizer's allocator does not survive a fork() while another thread is inside it.
#if !BATCHRPC_TEST_ASAN

TEST_CASE("calls of a forked child fail with ShutDown, and the parent's nodes go on") {
  for (int round = 0; round < 10; ++round)
    CHECK(end_of("fork") == 0);
}

TEST_CASE("a forked child may drop its copies of nodes and handles that the parent uses") {
  CHECK(end_of("fork_while_in_use") == 0);
}

// The thread sanitizer takes the threads of a child for its parent's, now and then.
#if !BATCHRPC_TEST_TSAN
TEST_CASE("a forked child may make nodes of its own") {
  CHECK(end_of("fork_and_start_nodes") == 0);
}
#endif

#endif

}  // namespace ending_test
}  // namespace batchrpc
