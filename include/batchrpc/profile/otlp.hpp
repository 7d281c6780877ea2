#pragma once

#include <iosfwd>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc {

/// What becomes a span.
struct OtlpOptions {
  bool operators = false;  ///< operators, too, within the span of the callee
};

/// A recording as spans of OpenTelemetry, in OTLP's JSON encoding: lines that each are an
/// ExportTraceServiceRequest of one node, as collectors read from a file ("OpenTelemetry Protocol
/// File Exporter", extension .jsonl) and take by HTTP, a line at a time.
///
/// A call is two spans: a client's, whose id is the call's own, and its child, a server's, from
/// when the call was received to when it was finished, whose id is made from that one, so that
/// recordings of both sides agree; there is none if the callee told nothing. Calls that the handler
/// makes are children of the server's span. Whether the call failed is told by the client's span,
/// and where the callee alone tells of the call by the server's. Phases are attributes of the
/// client's, in nanoseconds: "batchrpc.phase.wire_ns". Calls without a valid context have no spans.
///
/// `wall_clock_offset` is what the time since 1970 is more than the clock to which times are
/// aligned: the recording's node's (see ClockAlignment). Profiler::export_otlp() knows it.
/// @{
[[nodiscard]] BATCHRPC_EXPORT std::string otlp(const Recording& recording,
                                               Duration wall_clock_offset,
                                               const OtlpOptions& options = {});
BATCHRPC_EXPORT void otlp(const Recording& recording, Duration wall_clock_offset, std::ostream& out,
                          const OtlpOptions& options = {});
/// @}

}  // namespace batchrpc
