#pragma once

#include <iosfwd>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc {

/// A recording in the Trace Event Format, as JSON, which ui.perfetto.dev and chrome://tracing open
/// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
///
/// Each node is a process there. Its rows "calls 1", "calls 2"… have the calls that it made, with
/// their phases within; its rows "thread 42" what ran there for calls: handlers and operators; and
/// rows "thread 42 (2)" those that overlap without lying within one another, such as rows that wait
/// for their batch. Its rows "batches 1"… have its batches. Arrows lead from where a call was sent
/// to its handler, to its batch, and back to where the reply was. Times are microseconds from the
/// first on, on one clock; how well clocks could be aligned is said under `metadata`.
/// @{
[[nodiscard]] BATCHRPC_EXPORT std::string chrome_trace(const Recording& recording);
BATCHRPC_EXPORT void chrome_trace(const Recording& recording, std::ostream& out);
/// @}

}  // namespace batchrpc
