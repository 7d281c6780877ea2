#pragma once

/// Records of calls, as tables and traces: docs/profiling.md. Link batchrpc::profile.

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/profile/call_phases.hpp"
#include "batchrpc/profile/call_times.hpp"
#include "batchrpc/profile/chrome_trace.hpp"
#include "batchrpc/profile/clock_alignment.hpp"
#include "batchrpc/profile/otlp.hpp"
#include "batchrpc/profile/profile_table.hpp"
#include "batchrpc/profile/profiler.hpp"
#include "batchrpc/profile/recording.hpp"
