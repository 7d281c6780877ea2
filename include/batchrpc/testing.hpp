#pragma once

/// What a test of a program over batchrpc needs: a loop in virtual time and a network inside the
/// process, whose links can be slow, cut, partitioned and broken. A test that uses one seed runs
/// the same each time.
#include "batchrpc/transport/inproc.hpp"        // IWYU pragma: export
#include "batchrpc/transport/virtual_loop.hpp"  // IWYU pragma: export
