#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/secret.hpp"
#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/wire/decoder.hpp"
#include "batchrpc/wire/encoder.hpp"
#include "batchrpc/wire/envelope.hpp"
#include "wire/record.hpp"

/// Frames: the envelope of src/wire/frame.capnp, written at fixed offsets and read with checks.
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

inline constexpr std::uint16_t kInlinePayloads = 1;  // payloads directly follow this frame
inline constexpr std::uint16_t kNoReply = 2;         // for a call: no reply wanted
inline constexpr std::uint16_t kOfReply = 4;         // for a chunk: it belongs to a reply
inline constexpr std::uint16_t kResumed = 8;         // for a hello: it continues a session
inline constexpr std::uint16_t kJoins = 16;          // for a hello: its sender asks to join here

/// Whether frames of this kind are counted, and sent again after a connection broke.
[[nodiscard]] constexpr bool is_reliable(FrameKind kind) noexcept {
  return (kind >= FrameKind::define && kind <= FrameKind::cancel) || kind == FrameKind::credit;
}

/// The largest frame that any node may accept (NodeOptions::limits.max_frame_bytes).
inline constexpr std::uint64_t kMostFrameBytes = std::uint64_t{1} << 32;

/// The credits for a call's payloads: send none, or send all.
inline constexpr std::uint64_t kNoCredit = 0;
inline constexpr std::uint64_t kAllCredit = ~std::uint64_t{0};
/// The number of bytes of a call's payloads that are sent before a credit for them has arrived.
inline constexpr std::uint64_t kEagerBytes = std::uint64_t{1} << 20;

/// The limits of a call's metadata: entries, and bytes of all keys and values together.
inline constexpr std::size_t kMaxMetadata = 64;
inline constexpr std::size_t kMaxMetadataBytes = 8192;

/// The most bytes of the reason in a goodbye. The rest is cut off.
inline constexpr std::size_t kMaxReason = 1024;

/// Whether a call may carry this metadata; each entry needs a key.
[[nodiscard]] bool is_within_limits(
    const std::vector<std::pair<std::string, std::string>>& metadata) noexcept;

/// The scalar fields of a frame.
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
  std::uint64_t session = 0;   ///< chosen by the connecting node, never 0
  std::uint64_t received = 0;  ///< reliable frames of the session so far
  bool resumed = false;        ///< continues a session that both sides had agreed on
  bool joins = false;          ///< the sender looks for a group to join at this address
  std::string name{};
  std::string job{};
  Secret secret{};             ///< the same in every hello of the sender to this receiver
  std::uint64_t receiver = 0;  ///< the incarnation that the sender means; 0: whoever answers
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
  std::string function{};  ///< the function that threw, if it is not the function that was called
};

/// What a call asks the callee to record.
enum class RecordWish : std::uint16_t {
  none = 0,
  times = 1,
  operators = 2,  ///< times and operators
};

/// The data of a call besides its arguments.
struct CallContextBody {
  TraceContext trace{};
  std::vector<std::pair<std::string, std::string>> metadata{};
  RecordWish record = RecordWish::none;
};

struct Goodbye {
  std::uint16_t code = 0;
  std::string reason{};
};

/// Turns `encoder` into a whole frame: writes the header, the list of payload sizes, and the
/// segment table. Its first kEnvelopeWords must be reserved, and the body (if any) encoded at
/// kBodyPointer. Sets kInlinePayloads in the flags if the payloads are small enough. Nothing may be
/// encoded afterwards.
void finish_frame(Encoder& encoder, FrameHeader header);

[[nodiscard]] bool has_inline_payloads(std::span<const Word> frame) noexcept;

/// Changes the id of a finished frame.
inline void set_id(std::span<Word> frame, std::uint64_t id) noexcept { frame[2] = id; }
/// Adds a call's context to a frame that is not finished yet.
void add_context(Encoder& encoder, const CallContextBody& context);
/// The id of a finished frame in a buffer.
[[nodiscard]] std::uint64_t id_of(std::span<const std::byte> frame) noexcept;
/// The kind of a finished frame.
[[nodiscard]] FrameKind kind_of(std::span<const Word> frame) noexcept;
/// Writes the number of received reliable frames into a finished frame in a buffer.
void set_acknowledged(std::span<std::byte> frame, std::uint64_t received) noexcept;
/// The offset behind the first `count` reliable frames in a buffer of finished frames with their
/// inline payloads.
[[nodiscard]] std::size_t skip_reliable(std::span<const std::byte> frames, std::uint64_t count);
/// Changes the function number of a finished call frame.
void set_number(std::span<Word> frame, std::uint32_t number) noexcept;

/// Overwrites these words, a finished frame and its inline payloads, with a frame that receivers
/// ignore.
void make_void(std::span<std::byte> frame) noexcept;

/// A frame that consists of a header only.
[[nodiscard]] std::vector<Word> plain_frame(const FrameHeader& header);
[[nodiscard]] std::vector<Word> hello_frame(const Hello& hello);
[[nodiscard]] std::vector<Word> definition_frame(const Definition& definition);
[[nodiscard]] std::vector<Word> goodbye_frame(const Goodbye& goodbye);
/// An error reply to the call `id`: code, message and type of `error`. If the function had begun,
/// the call may have run. An error such as NotSent then describes one of the function's own calls,
/// so it is sent as a remote_error. A very long message is cut. `record` is the callee's side of
/// the call, if the caller asked for it.
[[nodiscard]] std::vector<Word> error_frame(std::uint64_t id, const std::exception_ptr& error,
                                            bool began = false, const CallRecord* record = nullptr);
/// The code under which error_frame() sends the error.
[[nodiscard]] ErrorCode code_on_wire(const std::exception_ptr& error, bool began) noexcept;
/// Whether errors of that code describe the delivery of one call. If a function throws one, it
/// describes another call, and is sent as a remote_error.
[[nodiscard]] bool is_of_one_call(ErrorCode code) noexcept;

/// A received frame. The receiver owns the words.
struct FrameView {
  FrameHeader header;
  std::span<const Word> words;                     ///< including the segment table
  std::span<const std::uint64_t> payload_sizes{};  ///< for calls and results; points into `words`

  /// Whether a call has a context, or a result a record.
  [[nodiscard]] bool has_context() const noexcept { return words[kContextPointer] != 0; }
  /// The message without its segment table: what a Decoder reads.
  [[nodiscard]] std::span<const Word> segment() const noexcept { return words.subspan(1); }
};

/// The position of the body for a Decoder of FrameView::segment().
inline constexpr std::size_t kBodyInSegment = kBodyPointer - 1;
inline constexpr std::size_t kContextInSegment = kContextPointer - 1;

/// The number of words of the frame that begins with `first`, including its segment table; nothing
/// if it is not the beginning of a single-segment message.
[[nodiscard]] std::optional<std::uint64_t> frame_words(Word first) noexcept;

/// Reads the header of the frame that begins with `words`, at least kEnvelopeWords of it. Throws
/// BadMessage.
[[nodiscard]] FrameHeader read_header(std::span<const Word> words);

/// Where a call or result lists the sizes of its payloads, in words of the frame.
struct PayloadSizes {
  std::size_t begin = 0;
  std::size_t count = 0;  ///< 0: it has no payloads
};
/// Finds that list by the first kEnvelopeWords of a frame of `frame_words` words. Throws
/// BadMessage.
[[nodiscard]] PayloadSizes place_of_sizes(std::span<const Word> envelope,
                                          std::uint64_t frame_words);

/// Parses the frame in `words`, which must contain exactly one frame. Throws BadMessage.
[[nodiscard]] FrameView parse_frame(std::span<const Word> words);

/// Read the body of a frame that has one. Throw BadMessage.
[[nodiscard]] Hello read_hello(const FrameView& frame);
[[nodiscard]] Definition read_definition(const FrameView& frame);
[[nodiscard]] ErrorBody read_error(const FrameView& frame);
/// The callee's side of a failed call; empty if the callee did not send it.
[[nodiscard]] std::vector<RecordBody> read_error_record(const FrameView& frame);
[[nodiscard]] Goodbye read_goodbye(const FrameView& frame);
/// Reads the context of a call that has one. Metadata beyond the limits is a BadMessage too.
[[nodiscard]] CallContextBody read_context(const FrameView& frame);

/// `size` rounded up to whole words, in bytes.
[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + 7) & ~std::uint64_t{7};
}
/// The bytes of padding.
inline constexpr std::array<std::byte, 8> kZeros{};

}  // namespace batchrpc::wire
