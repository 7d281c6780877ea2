#pragma once

/// Helpers for testing programs that use batchrpc (docs/testing.md): a world in virtual time with a
/// simulated network. Its links can be slow, cut, partitioned and broken, and its hosts can be
/// paused, killed and restarted. A test that uses one seed runs the same each time.
#include "batchrpc/testing/seeds.hpp"            // IWYU pragma: export
#include "batchrpc/testing/simulated_world.hpp"  // IWYU pragma: export
#include "batchrpc/transport/inproc.hpp"         // IWYU pragma: export
#include "batchrpc/transport/virtual_host.hpp"   // IWYU pragma: export
#include "batchrpc/transport/virtual_loop.hpp"   // IWYU pragma: export
