#pragma once

#include <iosfwd>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc {

/// Writes a recording in the Trace Event Format, as JSON, which ui.perfetto.dev and
/// chrome://tracing open
/// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
///
/// Each node is a process in the trace:
/// - Rows "calls 1", "calls 2"… have the calls that it made, with their phases inside.
/// - Rows "thread 42" have the handlers and operators that ran on that thread.
/// - Rows "thread 42 (2)" have those that overlap without nesting, such as rows of a batch that
///   wait.
/// - Rows "batches 1"… have its batches.
///
/// Arrows lead from the sending of a call to its handler, to its batch, and back to the arrival of
/// the reply. Times are microseconds since the first event, on one clock. `metadata` states how
/// well the clocks could be aligned.
/// @{
[[nodiscard]] BATCHRPC_EXPORT std::string chrome_trace(const Recording& recording);
BATCHRPC_EXPORT void chrome_trace(const Recording& recording, std::ostream& out);
/// @}

}  // namespace batchrpc
