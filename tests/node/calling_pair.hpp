#pragma once

#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace failures {

inline int area(int width, int height) { return width * height; }

}  // namespace failures

namespace batchrpc::test {

/// A node that calls, and one that is called.
struct CallingPair : NodePair {
  CallingPair() { b.expose<&failures::area>(); }
  void next_call_works() const { CHECK(a.call<&failures::area>("b", 6, 7).get() == 42); }
};

}  // namespace batchrpc::test
