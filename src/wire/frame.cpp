#include "wire/frame.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/wire/codec.hpp"

namespace batchrpc::wire {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the fast path writes Cap'n Proto's little-endian words as they are");

// The layout of `Frame` that the Cap'n Proto compiler chooses; tests/wire/frame_test.cpp compares
// them.
constexpr unsigned kDataWords = 5;
constexpr unsigned kPointers = 3;
constexpr std::size_t kData = 2;
constexpr std::size_t kPayloadsPointer = kBodyPointer + 1;
constexpr std::size_t kMaxPayloads = 4096;

constexpr Word kRootPointer = (Word{kDataWords} << 32) | (Word{kPointers} << 48);

constexpr Word kinds_word(const FrameHeader& header) noexcept {
  return Word{header.flags} | (Word{static_cast<std::uint16_t>(header.kind)} << 16) |
         (Word{header.number} << 32);
}

// Writes a list of 64-bit integers at the end of the message.
void write_sizes(std::vector<Word>& words, const std::vector<Bytes>& payloads) {
  const std::size_t offset = words.size() - (kPayloadsPointer + 1);
  constexpr Word kListOf64 = 5;
  words[kPayloadsPointer] =
      Word{1} | (Word{offset} << 2) | (kListOf64 << 32) | (Word{payloads.size()} << 35);
  for (const Bytes& payload : payloads)
    words.push_back(payload.size());
}

std::span<const std::uint64_t> read_sizes(std::span<const Word> words) {
  const PayloadSizes place = place_of_sizes(words, words.size());
  return words.subspan(place.begin, place.count);
}

template <class... Fields>
std::vector<Word> frame_with_body(const FrameHeader& header, const Fields&... fields) {
  Encoder encoder(kEnvelopeWords);
  encode_struct<Fields...>(encoder, kBodyPointer, fields...);
  finish_frame(encoder, header);
  return std::move(encoder.words());
}

template <class... Fields>
std::tuple<Fields...> body_of(const FrameView& frame) {
  Decoder decoder(frame.segment(), {});
  return decode_struct<Fields...>(decoder, kBodyInSegment);
}

constexpr std::size_t kLongestText = 16 * 1024;

}  // namespace

bool is_of_one_call(ErrorCode code) noexcept {
  return code == ErrorCode::not_sent || code == ErrorCode::unknown ||
         code == ErrorCode::peer_lost || code == ErrorCode::timed_out ||
         code == ErrorCode::bad_signature || code == ErrorCode::owner_lost ||
         code == ErrorCode::rref_expired;
}

void finish_frame(Encoder& encoder, FrameHeader header) {
  std::vector<Word>& words = encoder.words();
  const std::vector<Bytes>& payloads = encoder.payloads();
  if (!payloads.empty()) {
    if (payloads.size() > kMaxPayloads) {
      throw InvalidArgument("a call may have at most " + std::to_string(kMaxPayloads) +
                            " payloads (tensors, large byte views), but this one has " +
                            std::to_string(payloads.size()));
    }
    std::uint64_t total = 0;
    for (const Bytes& payload : payloads)
      total += padded(payload.size());
    // A larger frame has its own buffer at the receiver, and nothing may follow it.
    constexpr std::size_t kSmallFrameWords = 4096;
    if (total <= kInlinePayloadBytes && words.size() <= kSmallFrameWords)
      header.flags |= kInlinePayloads;
    write_sizes(words, payloads);
  }
  words[0] = Word{words.size() - 1} << 32;
  words[1] = kRootPointer;
  words[kData] = header.id;
  words[kData + 1] = header.sequence;
  words[kData + 2] = header.acknowledged;
  words[kData + 3] = kinds_word(header);
  words[kData + 4] = header.value;
}

bool has_inline_payloads(std::span<const Word> frame) noexcept {
  return (frame[kData + 3] & kInlinePayloads) != 0;
}

void set_number(std::span<Word> frame, std::uint32_t number) noexcept {
  Word& word = frame[kData + 3];
  word = (word & 0xffffffffU) | (Word{number} << 32);
}

std::uint64_t id_of(std::span<const std::byte> frame) noexcept {
  std::uint64_t id = 0;
  std::memcpy(&id, frame.data() + kData * sizeof(Word), sizeof id);
  return id;
}

FrameKind kind_of(std::span<const Word> frame) noexcept {
  return static_cast<FrameKind>((frame[kData + 3] >> 16) & 0xffffU);
}

void set_acknowledged(std::span<std::byte> frame, std::uint64_t received) noexcept {
  std::memcpy(frame.data() + (kData + 2) * sizeof(Word), &received, sizeof received);
}

std::size_t skip_reliable(std::span<const std::byte> frames, std::uint64_t count) {
  std::size_t at = 0;
  while (count > 0 && at < frames.size()) {
    Word first = 0;
    std::memcpy(&first, frames.data() + at, sizeof first);
    std::vector<Word> words(*frame_words(first));
    std::memcpy(words.data(), frames.data() + at, words.size() * sizeof(Word));
    at += words.size() * sizeof(Word);
    if (has_inline_payloads(words)) {
      for (const std::uint64_t payload : read_sizes(words))
        at += padded(payload);
    }
    if (is_reliable(kind_of(words))) --count;
  }
  return at;
}

void make_void(std::span<std::byte> frame) noexcept {
  const Word size = Word{frame.size() / sizeof(Word) - 1} << 32;
  const Word kinds = kinds_word({.kind = FrameKind::pong});
  std::memcpy(frame.data(), &size, sizeof size);
  std::memcpy(frame.data() + (kData + 3) * sizeof(Word), &kinds, sizeof kinds);
}

std::vector<Word> plain_frame(const FrameHeader& header) {
  Encoder encoder(kEnvelopeWords);
  finish_frame(encoder, header);
  return std::move(encoder.words());
}

std::vector<Word> hello_frame(const Hello& hello) {
  const auto flags =
      static_cast<std::uint16_t>((hello.resumed ? kResumed : 0) | (hello.joins ? kJoins : 0));
  return frame_with_body({.kind = FrameKind::hello, .flags = flags}, hello.major, hello.minor,
                         hello.rank, hello.incarnation, hello.session, hello.received, hello.name,
                         hello.job, hello.secret.first, hello.secret.second, hello.receiver);
}

std::vector<Word> definition_frame(const Definition& definition) {
  return frame_with_body({.kind = FrameKind::define}, definition.number, definition.name,
                         definition.signature);
}

std::vector<Word> goodbye_frame(const Goodbye& goodbye) {
  return frame_with_body({.kind = FrameKind::goodbye}, goodbye.code,
                         goodbye.reason.substr(0, kMaxReason));
}

namespace {

std::uint64_t retry_after_of(const Error& error) {
  const auto* const overloaded = dynamic_cast<const Overloaded*>(&error);
  if (overloaded == nullptr || overloaded->retry_after() <= std::chrono::nanoseconds::zero())
    return 0;
  const auto rounded = std::chrono::ceil<std::chrono::microseconds>(overloaded->retry_after());
  return static_cast<std::uint64_t>(rounded.count());
}

}  // namespace

ErrorCode code_on_wire(const std::exception_ptr& error, bool began) noexcept {
  const ErrorCode code = code_of(error);
  return began && is_of_one_call(code) ? ErrorCode::remote_error : code;
}

std::vector<Word> error_frame(std::uint64_t id, const std::exception_ptr& error, bool began,
                              const CallRecord* record) {
  ErrorBody body{.code = static_cast<std::uint16_t>(ErrorCode::remote_error),
                 .may_have_run = true,
                 .message = describe(error).substr(0, kLongestText),
                 .type = type_name(error).substr(0, kLongestText)};
  try {
    std::rethrow_exception(error);
  } catch (const RemoteError& nested) {
    // The function failed because a remote function that it called had thrown,
    body.type = std::string_view(nested.type()).substr(0, kLongestText);
    if (!began) {  // or it never ran, because its object's constructor had.
      body.message = std::string_view(nested.thrown_what()).substr(0, kLongestText);
      body.function = std::string_view(nested.function()).substr(0, kLongestText);
      body.may_have_run = false;
    }
  } catch (const Error& known) {
    if (!began || !is_of_one_call(known.code())) {
      body.code = static_cast<std::uint16_t>(known.code());
      body.may_have_run = began || known.may_have_run();
      body.retry_after = retry_after_of(known);
    }
  } catch (...) {  // other exceptions travel as a remote_error
  }
  std::vector<RecordBody> records;
  if (record != nullptr) records.push_back(side_of(*record));
  return frame_with_body({.kind = FrameKind::error, .id = id}, body.code, body.may_have_run,
                         body.message, body.type, body.retry_after, body.function, records);
}

std::optional<std::uint64_t> frame_words(Word first) noexcept {
  if ((first & 0xffffffffU) != 0) return std::nullopt;
  return (first >> 32) + 1;
}

FrameHeader read_header(std::span<const Word> words) {
  if (words.size() < kEnvelopeWords || words[1] != kRootPointer) {
    throw BadMessage("a frame does not begin with the envelope of protocol version " +
                     std::to_string(kMajor));
  }
  const Word kinds = words[kData + 3];
  return {.kind = static_cast<FrameKind>((kinds >> 16) & 0xffffU),
          .flags = static_cast<std::uint16_t>(kinds & 0xffffU),
          .number = static_cast<std::uint32_t>(kinds >> 32),
          .id = words[kData],
          .sequence = words[kData + 1],
          .acknowledged = words[kData + 2],
          .value = words[kData + 4]};
}

PayloadSizes place_of_sizes(std::span<const Word> envelope, std::uint64_t frame_words) {
  const Word pointer = envelope[kPayloadsPointer];
  if (pointer == 0) return {};
  const auto offset = static_cast<std::int32_t>(static_cast<std::uint32_t>(pointer)) >> 2;
  const std::uint64_t count = pointer >> 35;
  const std::int64_t start = static_cast<std::int64_t>(kPayloadsPointer) + 1 + offset;
  if ((pointer & 3) != 1 || ((pointer >> 32) & 7) != 5 || count > kMaxPayloads || start < 1 ||
      static_cast<std::uint64_t>(start) + count > frame_words) {
    throw BadMessage("a frame's list of payload sizes points outside the frame");
  }
  return {.begin = static_cast<std::size_t>(start), .count = count};
}

FrameView parse_frame(std::span<const Word> words) {
  FrameView frame;
  frame.header = read_header(words);
  frame.words = words;
  if (frame.header.kind == FrameKind::call || frame.header.kind == FrameKind::result) {
    frame.payload_sizes = read_sizes(words);
  }
  return frame;
}

Hello read_hello(const FrameView& frame) {
  Hello hello;
  std::tie(hello.major, hello.minor, hello.rank, hello.incarnation, hello.session, hello.received,
           hello.name, hello.job, hello.secret.first, hello.secret.second, hello.receiver) =
      body_of<std::uint16_t, std::uint16_t, std::int32_t, std::uint64_t, std::uint64_t,
              std::uint64_t, std::string, std::string, std::uint64_t, std::uint64_t, std::uint64_t>(
          frame);
  hello.resumed = (frame.header.flags & kResumed) != 0;
  hello.joins = (frame.header.flags & kJoins) != 0;
  return hello;
}

Definition read_definition(const FrameView& frame) {
  Definition definition;
  std::tie(definition.number, definition.name, definition.signature) =
      body_of<std::uint32_t, std::string, std::string>(frame);
  return definition;
}

ErrorBody read_error(const FrameView& frame) {
  ErrorBody body;
  std::tie(body.code, body.may_have_run, body.message, body.type, body.retry_after, body.function) =
      body_of<std::uint16_t, bool, std::string, std::string, std::uint64_t, std::string>(frame);
  return body;
}

std::vector<RecordBody> read_error_record(const FrameView& frame) {
  Decoder decoder(frame.segment(), {}, {.traversal_words = kMaxRecordWords});
  return std::get<6>(decode_struct<std::uint16_t, bool, std::string, std::string, std::uint64_t,
                                   std::string, std::vector<RecordBody>>(decoder, kBodyInSegment));
}

bool is_within_limits(const std::vector<std::pair<std::string, std::string>>& metadata) noexcept {
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata) {
    if (key.empty()) return false;
    bytes += key.size() + value.size();
  }
  return metadata.size() <= kMaxMetadata && bytes <= kMaxMetadataBytes;
}

void add_context(Encoder& encoder, const CallContextBody& context) {
  encode_struct(encoder, kContextPointer, bytes_of(context.trace), context.metadata,
                static_cast<std::uint16_t>(context.record));
}

CallContextBody read_context(const FrameView& frame) {
  constexpr std::size_t kWords = 2 * kMaxMetadataBytes / sizeof(Word) + 16 * kMaxMetadata;
  Decoder decoder(frame.segment(), {}, {.traversal_words = kWords});
  auto [trace, metadata, record] =
      decode_struct<TraceBytes, std::vector<std::pair<std::string, std::string>>, std::uint16_t>(
          decoder, kContextInSegment);
  if (!is_within_limits(metadata)) {
    throw BadMessage("a call has more metadata than " + std::to_string(kMaxMetadata) +
                     " entries or " + std::to_string(kMaxMetadataBytes) +
                     " bytes, or an entry without a key");
  }
  const auto known = std::min(record, static_cast<std::uint16_t>(RecordWish::operators));
  return {trace_of(trace), std::move(metadata), static_cast<RecordWish>(known)};
}

Goodbye read_goodbye(const FrameView& frame) {
  Goodbye goodbye;
  std::tie(goodbye.code, goodbye.reason) = body_of<std::uint16_t, std::string>(frame);
  if (goodbye.reason.size() > kMaxReason) goodbye.reason.resize(kMaxReason);
  return goodbye;
}

}  // namespace batchrpc::wire
