#pragma once

/// What a test of a program over batchrpc needs (docs/testing.md): a world in virtual time, with a
/// network inside the process whose links can be slow, cut, partitioned and broken, and hosts that
/// can be paused, killed and started again. A test that uses one seed runs the same each time. Link
/// batchrpc::testing.
#include "batchrpc/testing/seeds.hpp"            // IWYU pragma: export
#include "batchrpc/testing/simulated_world.hpp"  // IWYU pragma: export
#include "batchrpc/transport/inproc.hpp"         // IWYU pragma: export
#include "batchrpc/transport/virtual_host.hpp"   // IWYU pragma: export
#include "batchrpc/transport/virtual_loop.hpp"   // IWYU pragma: export
