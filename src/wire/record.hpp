#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/call_record.hpp"
#include "batchrpc/wire/codec.hpp"

/// The wire form of call records: the structs of src/wire/frame.capnp.
namespace batchrpc::wire {

/// The limit of what a record may cost its reader (DecodeLimits): 8 MiB.
inline constexpr std::size_t kMaxRecordWords = std::size_t{1} << 20;

/// Trace id, span id, flags.
using TraceBytes = std::array<std::uint8_t, 25>;
[[nodiscard]] TraceBytes bytes_of(const TraceContext& trace) noexcept;
[[nodiscard]] TraceContext trace_of(const TraceBytes& bytes) noexcept;

struct BatchBody {
  std::uint64_t number = 0;
  std::uint64_t rows = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct OperatorBody {
  std::string name{};
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t thread = 0;
  bool shared = false;
};

struct CallBody;

/// The callee's side of a call.
struct RecordBody {
  std::uint64_t process = 0;
  std::uint64_t thread = 0;
  std::int64_t received = 0;
  std::int64_t begun = 0;
  std::int64_t finished = 0;
  BatchBody batch{};
  std::vector<OperatorBody> operators{};
  std::vector<CallBody> calls;  // without braces, because clang rejects them for an incomplete type
  std::uint64_t left_out = 0;
};

struct PlaceBody {
  std::string node{};
  std::int32_t rank = -1;
  std::uint64_t process = 0;
  std::uint64_t thread = 0;
};

/// A whole record.
struct CallBody {
  std::string function{};
  PlaceBody caller{};
  PlaceBody callee{};
  TraceBytes trace{};
  std::uint64_t parent = 0;
  std::int64_t called = 0;
  std::int64_t encoded = 0;
  std::int64_t sent = 0;
  std::int64_t replied = 0;
  std::int64_t ended = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t bytes_in = 0;
  std::string error{};
  RecordBody record{};
  bool parent_is_external = false;
  bool shared = false;
};

[[nodiscard]] CallBody body_of(const CallRecord& record);
/// Very long names are cut.
[[nodiscard]] BATCHRPC_EXPORT CallRecord record_of(CallBody&& body);
/// Convert the callee's side only: the rest of the record is ignored, or left empty.
/// @{
[[nodiscard]] RecordBody side_of(const CallRecord& record);
[[nodiscard]] CallRecord record_of(RecordBody&& body);
/// @}

/// Append the callee's side to a message, at the pointer `pointer` of its words, and read it.
/// Reading throws BadMessage, also beyond the decoder's limits.
/// @{
void encode_side(Encoder& encoder, std::size_t pointer, const CallRecord& record);
[[nodiscard]] CallRecord decode_side(Decoder& decoder, std::size_t pointer);
/// @}

}  // namespace batchrpc::wire
