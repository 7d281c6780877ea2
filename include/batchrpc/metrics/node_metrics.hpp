#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/histogram.hpp"
#include "batchrpc/metrics/call_metrics.hpp"

namespace batchrpc {

/// The calls of one function, which this node, other nodes, or both may expose.
struct FunctionMetrics {
  std::string name{};      ///< the name it is exposed under, without the mark of a method
  CallMetrics made{};      ///< calls that this node made to it, on all peers
  CallMetrics answered{};  ///< calls that other nodes made to it here
};

/// The calls that a node has made to one function of one peer.
struct PeerCalls {
  std::string function{};  ///< the function's name
  CallMetrics made{};      ///< calls to that peer
};

/// A peer, as in PeerInfo, and the calls that this node has made to it. The node itself is listed
/// if it has called itself.
struct PeerMetrics {
  std::string name{};  ///< unique in the group
  int rank = -1;       ///< -1: not known
  /// "known", "connecting", "connected", "lost"; "self"; "gone": no node reports it any more;
  /// empty: not a single peer (`kUnknownName`, `kOtherName`).
  std::string state{};
  std::string identity{};            ///< what it has proved, as in PeerInfo; empty: nothing
  std::uint64_t reconnects = 0;      ///< of its sessions
  Duration round_trip{};             ///< of a ping, smoothed; zero: not measured
  std::uint64_t bytes_sent = 0;      ///< over all its connections
  std::uint64_t bytes_received = 0;  ///< over all its connections
  std::size_t pending = 0;           ///< calls of this node that wait for an answer
  std::size_t answering = 0;         ///< calls of the peer that run on workers or complete later
  std::size_t output_bytes = 0;      ///< bytes to be sent, or kept until the peer acknowledges them
  CallMetrics made{};                ///< calls of all functions
  std::vector<PeerCalls> functions{};  ///< the same calls, by function
};

/// The number of batches that started for one reason.
struct ReasonCount {
  std::string reason{};       ///< to_string(BatchReason)
  std::uint64_t batches = 0;  ///< batches that started for this reason
};

/// A batcher that is exposed on the node, or all batchers with one name, as in BatchStatistics.
struct BatcherMetrics {
  std::string name{};        ///< the name it is exposed under
  std::size_t batchers = 1;  ///< existing batchers with that name: one per object if it is a member
  /// As in BatchStatistics, summed over the batchers.
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

  BATCHRPC_EXPORT void add(const BatcherMetrics& other);  ///< adds the metrics of `other`
};

/// The calls that a node has accepted (NodeOptions::limits.calls). All zero without limits.
struct QueueMetrics {
  bool limited = false;       ///< whether there are limits
  std::size_t accepted = 0;   ///< accepted calls, waiting or running
  std::size_t running = 0;    ///< accepted calls that are running
  std::size_t waiting = 0;    ///< accepted calls that are waiting
  std::uint64_t refused = 0;  ///< calls refused so far
};

/// The number of objects of one type, or of one owner.
struct RRefCount {
  std::string name{};       ///< name of the type or owner
  std::size_t objects = 0;  ///< the number of objects
  std::size_t holders = 0;  ///< owned objects: nodes that hold some, counted once for each type
  std::size_t waiting_calls = 0;  ///< owned objects: calls of their methods that have not begun
};

/// The counts of RRefReport.
struct RRefMetrics {
  std::vector<RRefCount> owned{};  ///< by type
  std::vector<RRefCount> used{};   ///< by owner
  std::size_t in_flight = 0;       ///< handles that were sent and may not have arrived
};

/// An error that a node remembers.
struct ErrorRecord {
  /// The kind of operation that failed.
  enum class Kind : unsigned char {
    call,        ///< a call that this node made
    answer,      ///< a call that this node answered
    connection,  ///< a peer that was lost, or a connection that was dropped because of what the
                 ///< peer sent
  };
  Kind kind = Kind::call;  ///< the kind of operation that failed
  TimePoint at{};          ///< on the node's clock
  Duration ago{};          ///< its age when the snapshot was taken
  ErrorCode code{};        ///< the code that the caller sees
  std::string function{};  ///< empty for a connection
  std::string peer{};      ///< the peer that was called, or that called
  std::string text{};      ///< at most 256 bytes
};

/// A snapshot of a node: what it has done since it was created, and what is in flight. Counters
/// only grow. The number of names is bounded: functions and peers beyond the first few thousand are
/// counted together as `kOtherName`.
struct NodeMetrics {
  std::string name{};             ///< name of the node
  int rank = -1;                  ///< -1: not assigned yet
  std::uint64_t incarnation = 0;  ///< tells apart two nodes that had the same name
  Duration uptime{};              ///< since it was created

  std::vector<FunctionMetrics> functions{};  ///< sorted by name
  std::vector<PeerMetrics> peers{};          ///< sorted by name
  std::vector<BatcherMetrics> batchers{};    ///< sorted by name
  CallMetrics made{};                        ///< all calls that this node made
  CallMetrics answered{};                    ///< all calls that this node accepted from others

  std::uint64_t retries = 0;  ///< attempts after the first; each is also counted as a call made
  std::size_t pending = 0;    ///< calls made that wait for an answer
  std::size_t answering = 0;  ///< calls that run on workers or complete later
  std::size_t parked = 0;     ///< calls that wait until their function is exposed
  std::size_t workers = 0;    ///< threads that run handlers; 0: the loop runs them
  QueueMetrics queue{};       ///< calls that wait to be run

  std::size_t output_bytes = 0;          ///< bytes to be sent, or kept until they are acknowledged
  std::size_t payload_bytes_in_use = 0;  ///< memory of large payloads that the program holds
  std::size_t payload_bytes_kept = 0;    ///< memory kept for later payloads

  /// How long the node's certificate is still valid, negative once it has expired; empty: it has
  /// none.
  std::optional<std::chrono::seconds> certificate_time_left{};

  RRefMetrics rrefs{};                     ///< objects behind remote references
  std::vector<ErrorRecord> last_errors{};  ///< the last 32, oldest first
};

/// Names for what is counted together. For functions: those that peers called but that are not
/// exposed here, those of the library itself, and those beyond the limit of names. For peers:
/// called peers that no node knows, and those beyond the limit.
/// @{
inline constexpr std::string_view kUnknownName = "(unknown)";
inline constexpr std::string_view kLibraryName = "(library)";
inline constexpr std::string_view kOtherName = "(other)";
/// @}

/// The name of `kind`, such as "call".
[[nodiscard]] BATCHRPC_EXPORT std::string_view to_string(ErrorRecord::Kind kind) noexcept;

/// Formats `metrics` as one line of JSON. Names that end in `_ns` are nanoseconds. Histograms have
/// count, sum, quantiles, and their buckets as [lowest, highest, count].
[[nodiscard]] BATCHRPC_EXPORT std::string to_json(const NodeMetrics& metrics);

/// Formats `metrics` in the text format of Prometheus, version 0.0.4 (docs/metrics.md), in base
/// units. All names begin with batchrpc_.
[[nodiscard]] BATCHRPC_EXPORT std::string to_prometheus(const NodeMetrics& metrics);

}  // namespace batchrpc
