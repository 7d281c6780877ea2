#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/wire/decoder.hpp"
#include "batchrpc/wire/encoder.hpp"
#include "batchrpc/wire/envelope.hpp"
#include "wire/record.hpp"

/// Frames: the envelope of src/wire/frame.capnp, written at its fixed offsets and read with checks.
namespace batchrpc::wire {

/// The version of the protocol. A peer of another major version is refused. Between two minor
/// versions the smaller one holds: a later node sends nothing that an earlier peer does not know.
inline constexpr std::uint16_t kMajor = 1;
inline constexpr std::uint16_t kMinor = 0;

enum class FrameKind : std::uint16_t {
  hello,
  define,
  call,
  result,
  error,
  chunk,
  cancel,
  acknowledge,
  credit,
  ping,
  pong,
  goodbye,
};

inline constexpr std::uint16_t kInlinePayloads = 1;  // payloads follow this frame at once
inline constexpr std::uint16_t kNoReply = 2;         // a call: no reply wanted
inline constexpr std::uint16_t kOfReply = 4;         // a chunk: belongs to a reply
inline constexpr std::uint16_t kResumed = 8;         // a hello: goes on with a session

/// Whether a frame of this kind is counted, and sent again when the connection broke.
[[nodiscard]] constexpr bool is_reliable(FrameKind kind) noexcept {
  return (kind >= FrameKind::define && kind <= FrameKind::cancel) || kind == FrameKind::credit;
}

/// The credits for a call's payloads: none of them is to be sent, or all.
inline constexpr std::uint64_t kNoCredit = 0;
inline constexpr std::uint64_t kAllCredit = ~std::uint64_t{0};
/// So much of a call's payloads is sent before a credit has come for them.
inline constexpr std::uint64_t kEagerBytes = std::uint64_t{1} << 20;

/// A call's metadata: entries, and bytes of their keys and values together.
inline constexpr std::size_t kMaxMetadata = 64;
inline constexpr std::size_t kMaxMetadataBytes = 8192;

/// Whether so much may go with a call, each with a key.
[[nodiscard]] bool is_within_limits(
    const std::vector<std::pair<std::string, std::string>>& metadata) noexcept;

/// The scalars of a frame.
struct FrameHeader {
  FrameKind kind = FrameKind::ping;
  std::uint16_t flags = 0;
  std::uint32_t number = 0;  ///< call: function; chunk: payload
  std::uint64_t id = 0;
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t value = 0;  ///< call: timeout in µs; chunk: size in bytes; credit: one of the above
};

struct Hello {
  std::uint16_t major = kMajor;
  std::uint16_t minor = kMinor;
  std::int32_t rank = -1;
  std::uint64_t incarnation = 0;
  std::uint64_t session = 0;   ///< the number that who connects has chosen, never 0
  std::uint64_t received = 0;  ///< reliable frames of the session so far
  bool resumed = false;        ///< goes on with a session that both sides had agreed on
  std::string name{};
  std::string job{};
};

struct Definition {
  std::uint32_t number = 0;
  std::string name{};
  std::string signature{};
};

struct ErrorBody {
  std::uint16_t code = 0;
  bool may_have_run = false;
  std::string message{};
  std::string type{};
  std::uint64_t retry_after = 0;  ///< microseconds
  std::string function{};         ///< what threw, where it is not the function that was called
};

/// What a call wants to know of itself.
enum class RecordWish : std::uint16_t {
  none = 0,
  times = 1,
  operators = 2,  ///< and times
};

/// What goes with a call beside its arguments.
struct CallContextBody {
  TraceContext trace{};
  std::vector<std::pair<std::string, std::string>> metadata{};
  RecordWish record = RecordWish::none;
};

struct Goodbye {
  std::uint16_t code = 0;
  std::string reason{};
};

/// Makes `encoder`, whose first kEnvelopeWords were reserved and whose body (if any) was encoded at
/// kBodyPointer, a whole frame: writes the header, the list of its payloads' sizes, and the segment
/// table. Sets kInlinePayloads in the flags when the payloads are small enough. Nothing may be
/// encoded afterwards.
void finish_frame(Encoder& encoder, FrameHeader header);

[[nodiscard]] bool has_inline_payloads(std::span<const Word> frame) noexcept;

/// Changes the id of a finished frame.
inline void set_id(std::span<Word> frame, std::uint64_t id) noexcept { frame[2] = id; }
/// Adds a call's context to a frame that is to be finished.
void add_context(Encoder& encoder, const CallContextBody& context);
/// The id of a finished frame, as it lies in a buffer.
[[nodiscard]] std::uint64_t id_of(std::span<const std::byte> frame) noexcept;
/// The kind of a finished frame.
[[nodiscard]] FrameKind kind_of(std::span<const Word> frame) noexcept;
/// Says in a finished frame, as it lies in a buffer, how many reliable frames were received.
void set_acknowledged(std::span<std::byte> frame, std::uint64_t received) noexcept;
/// Where the frame after the first `count` reliable ones begins, in a buffer of finished frames
/// with their inline payloads.
[[nodiscard]] std::size_t skip_reliable(std::span<const std::byte> frames, std::uint64_t count);
/// Changes the function's number of a finished call frame.
void set_number(std::span<Word> frame, std::uint32_t number) noexcept;

/// Makes a frame upon which nobody acts out of these whole words: a finished frame, and the inline
/// payloads behind it.
void make_void(std::span<std::byte> frame) noexcept;

/// A frame of a header alone.
[[nodiscard]] std::vector<Word> plain_frame(const FrameHeader& header);
[[nodiscard]] std::vector<Word> hello_frame(const Hello& hello);
[[nodiscard]] std::vector<Word> definition_frame(const Definition& definition);
[[nodiscard]] std::vector<Word> goodbye_frame(const Goodbye& goodbye);
/// An error as it travels: code, message and type of `error`, as the reply to call `id`. Of a
/// function that had begun to run, it may have run; and what its own calls ended in (NotSent, say)
/// says nothing of it, so that this travels as a remote_error. A very long message is cut.
/// `record`: the callee's side of the call, if that was asked for.
[[nodiscard]] std::vector<Word> error_frame(std::uint64_t id, const std::exception_ptr& error,
                                            bool began = false, const CallRecord* record = nullptr);
/// The code by which error_frame() has it travel.
[[nodiscard]] ErrorCode code_on_wire(const std::exception_ptr& error, bool began) noexcept;
/// Whether errors of that code tell how a call went on its way: thrown by a function, they are of
/// another call, and travel as a remote_error.
[[nodiscard]] bool is_of_one_call(ErrorCode code) noexcept;

/// A frame as it was received; the words stay the receiver's.
struct FrameView {
  FrameHeader header;
  std::span<const Word> words;                     ///< from the segment table on
  std::span<const std::uint64_t> payload_sizes{};  ///< calls and results; in `words`

  /// Of a call: whether it has a context; of a result, a record.
  [[nodiscard]] bool has_context() const noexcept { return words[kContextPointer] != 0; }
  /// The message without its segment table: what a Decoder reads.
  [[nodiscard]] std::span<const Word> segment() const noexcept { return words.subspan(1); }
};

/// Where a Decoder of FrameView::segment() finds the body.
inline constexpr std::size_t kBodyInSegment = kBodyPointer - 1;
inline constexpr std::size_t kContextInSegment = kContextPointer - 1;

/// How many words the frame that begins with `first` has, its segment table included; nothing when
/// it is not the beginning of a single-segment message.
[[nodiscard]] std::optional<std::uint64_t> frame_words(Word first) noexcept;

/// The frame in `words` (exactly its own). Throws BadMessage.
[[nodiscard]] FrameView parse_frame(std::span<const Word> words);

/// The bodies of the frames that have one. Throw BadMessage.
[[nodiscard]] Hello read_hello(const FrameView& frame);
[[nodiscard]] Definition read_definition(const FrameView& frame);
[[nodiscard]] ErrorBody read_error(const FrameView& frame);
/// The callee's side of a call that has failed; empty where it does not tell.
[[nodiscard]] std::vector<RecordBody> read_error_record(const FrameView& frame);
[[nodiscard]] Goodbye read_goodbye(const FrameView& frame);
/// Of a call that has one; metadata beyond the limits is a BadMessage, too.
[[nodiscard]] CallContextBody read_context(const FrameView& frame);

/// `size` rounded up to whole words, in bytes.
[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + 7) & ~std::uint64_t{7};
}

}  // namespace batchrpc::wire
