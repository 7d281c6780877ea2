#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/histogram.hpp"
#include "batchrpc/metrics/call_metrics.hpp"

namespace batchrpc {

/// A function, by the name that people know it by: of this node, of others, or of both.
struct FunctionMetrics {
  std::string name{};      ///< as it is exposed, without what marks a method
  CallMetrics made{};      ///< calls of it by this node, to all peers
  CallMetrics answered{};  ///< calls of it by others, here
};

/// Calls of one function that a node has made to one peer.
struct PeerCalls {
  std::string function{};  ///< its name
  CallMetrics made{};      ///< to that peer
};

/// A peer, as PeerInfo knows it, and the calls that this node has made to it. The node itself is
/// one when it has called itself.
struct PeerMetrics {
  std::string name{};  ///< unique in the group
  int rank = -1;       ///< -1: not known
  /// "known", "connecting", "connected", "lost"; "self"; "gone": nobody tells of it any more;
  /// empty: not one peer (`kUnknownName`, `kOtherName`).
  std::string state{};
  std::uint64_t reconnects = 0;      ///< of its sessions
  Duration round_trip{};             ///< of a ping, smoothed; zero: not measured
  std::uint64_t bytes_sent = 0;      ///< over its connections, in all
  std::uint64_t bytes_received = 0;  ///< the same
  std::size_t pending = 0;           ///< calls of this node that wait for its answer
  std::size_t answering = 0;         ///< calls of its that are being answered on workers, or later
  std::size_t output_bytes = 0;      ///< to be sent, or kept until it has acknowledged them
  CallMetrics made{};                ///< calls of all functions
  std::vector<PeerCalls> functions{};  ///< the same by function
};

/// Why batches of a batcher started, and how many.
struct ReasonCount {
  std::string reason{};       ///< to_string(BatchReason)
  std::uint64_t batches = 0;  ///< that it has started
};

/// A batcher that is exposed on the node, or all those of one name, as BatchStatistics tells.
struct BatcherMetrics {
  std::string name{};        ///< as it is exposed
  std::size_t batchers = 1;  ///< of that name now: one for each object where it is a member
  /// As in BatchStatistics, added up.
  /// @{
  std::uint64_t rows = 0;
  std::uint64_t rejected = 0;
  std::uint64_t invalid = 0;
  std::uint64_t expired = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t left = 0;
  std::uint64_t dropped = 0;
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;
  std::uint64_t batches = 0;
  std::uint64_t handler_runs = 0;
  std::uint64_t padding = 0;
  std::vector<ReasonCount> reasons{};
  Histogram sizes{};         ///< rows
  Histogram queue_wait{};    ///< ns
  Histogram handler_time{};  ///< ns
  Histogram latency{};       ///< ns
  double rows_per_second = 0;
  std::size_t queued = 0;
  std::size_t queued_bytes = 0;
  std::size_t held = 0;
  std::size_t running = 0;
  /// @}

  BATCHRPC_EXPORT void add(const BatcherMetrics& other);  ///< those of others, too
};

/// The calls that a node has taken on (NodeOptions::call_limits). All zero without limits.
struct QueueMetrics {
  bool limited = false;       ///< whether there are limits
  std::size_t accepted = 0;   ///< that wait and run
  std::size_t running = 0;    ///< of these, that run
  std::size_t waiting = 0;    ///< and that wait
  std::uint64_t refused = 0;  ///< in all
};

/// A number of objects, by type or by owner.
struct RRefCount {
  std::string name{};       ///< of the type or owner
  std::size_t objects = 0;  ///< how many
  std::size_t holders = 0;  ///< of owned ones: other nodes that hold some, each type for itself
  std::size_t waiting_calls = 0;  ///< of owned ones: of their methods, not begun
};

/// What RRefReport tells.
struct RRefMetrics {
  std::vector<RRefCount> owned{};  ///< by type
  std::vector<RRefCount> used{};   ///< by owner
  std::size_t in_flight = 0;       ///< handles that were sent and may not have arrived
};

/// One of the errors that a node remembers.
struct ErrorRecord {
  /// What failed.
  enum class Kind : unsigned char {
    call,        ///< a call that this node has made
    answer,      ///< a call that it has answered
    connection,  ///< a peer that was lost, or whose connection was dropped for what it sent
  };
  Kind kind = Kind::call;  ///< what failed
  TimePoint at{};          ///< on the node's clock
  Duration ago{};          ///< when the snapshot was taken
  ErrorCode code{};        ///< as the caller is told
  std::string function{};  ///< empty: of a connection
  std::string peer{};      ///< who was called, or has called
  std::string text{};      ///< at most 256 bytes
};

/// What a node has done since it was made, and what it has under way: a copy, which does not change
/// any more. Counters only grow. Names that nobody bounds are bounded here: functions and peers
/// beyond the first some thousands are together under `kOtherName`.
struct NodeMetrics {
  std::string name{};             ///< of the node
  int rank = -1;                  ///< -1: none yet
  std::uint64_t incarnation = 0;  ///< differs between two nodes that bore one name
  Duration uptime{};              ///< since it was made

  std::vector<FunctionMetrics> functions{};  ///< in order of their names
  std::vector<PeerMetrics> peers{};          ///< the same
  std::vector<BatcherMetrics> batchers{};    ///< the same
  CallMetrics made{};                        ///< all calls that this node has made
  CallMetrics answered{};                    ///< all calls of others that it has taken

  std::uint64_t retries = 0;  ///< attempts beyond the first, which are among the calls made
  std::size_t pending = 0;    ///< calls made that wait for their answer
  std::size_t answering = 0;  ///< calls that are being answered on workers, or later
  std::size_t parked = 0;     ///< calls that wait for their function to be exposed
  std::size_t workers = 0;    ///< threads that run handlers; 0: the loop does
  QueueMetrics queue{};       ///< calls that wait for their turn

  std::size_t output_bytes = 0;          ///< to be sent, or kept until they are acknowledged
  std::size_t payload_bytes_in_use = 0;  ///< memory of large payloads that the program has
  std::size_t payload_bytes_kept = 0;    ///< and that is kept for the next ones

  RRefMetrics rrefs{};                     ///< objects behind remote references
  std::vector<ErrorRecord> last_errors{};  ///< 32, the latest last
};

/// Of functions: those that peers called and that were not exposed here; those of the library
/// itself, all together; and those beyond the limit of names. Of peers: all that were called and
/// that nobody knows; and those beyond the limit.
/// @{
inline constexpr std::string_view kUnknownName = "(unknown)";
inline constexpr std::string_view kLibraryName = "(library)";
inline constexpr std::string_view kOtherName = "(other)";
/// @}

/// Its name, such as "call".
[[nodiscard]] BATCHRPC_EXPORT std::string_view to_string(ErrorRecord::Kind kind) noexcept;

/// As JSON, in one line. Times are in ns where the name ends in `_ns`; histograms have count, sum,
/// quantiles, and their buckets as [lowest, highest, count].
[[nodiscard]] BATCHRPC_EXPORT std::string to_json(const NodeMetrics& metrics);

/// In the text format of Prometheus, version 0.0.4 (docs/metrics.md): base units, names that begin
/// with batchrpc_.
[[nodiscard]] BATCHRPC_EXPORT std::string to_prometheus(const NodeMetrics& metrics);

}  // namespace batchrpc
