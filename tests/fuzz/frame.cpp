#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/wire/codec.hpp"
#include "fuzz/targets.hpp"
#include "wire/frame.hpp"
#include "wire/record.hpp"

// One frame: the parser, and the readers of all bodies, whatever kind the frame says it is. What
// they read is written and read again.

namespace batchrpc::fuzz {
namespace {

template <class Body, class Read, class Write, class Tie>
void comes_back(const wire::FrameView& frame, Read read, Write write, Tie tie) {
  Body body;
  try {
    body = read(frame);
  } catch (const BadMessage&) {
    return;
  }
  const std::vector<Word> words = write(body);
  const Body again = read(wire::parse_frame(words));
  require(tie(body) == tie(again), "a frame's body is another one when written and read again");
}

std::vector<Word> error_words(const wire::ErrorBody& body) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<std::uint16_t, bool, std::string, std::string, std::uint64_t>(
      encoder, wire::kBodyPointer, body.code, body.may_have_run, body.message, body.type,
      body.retry_after);
  wire::finish_frame(encoder, {.kind = wire::FrameKind::error});
  return encoder.words();
}

std::vector<Word> context_words(const wire::CallContextBody& body) {
  Encoder encoder(wire::kEnvelopeWords);
  wire::add_context(encoder, body);
  wire::finish_frame(encoder, {.kind = wire::FrameKind::call});
  return encoder.words();
}

bool same(const CallRecord& a, const CallRecord& b) {
  const auto operators = [](const OperatorRecord& x, const OperatorRecord& y) {
    return std::tie(x.name, x.begin, x.end, x.thread, x.shared) ==
           std::tie(y.name, y.begin, y.end, y.thread, y.shared);
  };
  return std::tie(a.callee.process, a.callee.thread, a.received, a.begun, a.finished, a.left_out) ==
             std::tie(b.callee.process, b.callee.thread, b.received, b.begun, b.finished,
                      b.left_out) &&
         std::tie(a.batch.number, a.batch.rows, a.batch.begin, a.batch.end) ==
             std::tie(b.batch.number, b.batch.rows, b.batch.begin, b.batch.end) &&
         std::tie(a.function, a.error, a.called, a.ended, a.bytes_out) ==
             std::tie(b.function, b.error, b.called, b.ended, b.bytes_out) &&
         std::equal(a.operators.begin(), a.operators.end(), b.operators.begin(), b.operators.end(),
                    operators) &&
         std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(), same);
}

// What the callee tells, in that place of a message.
CallRecord read_side(std::span<const Word> segment) {
  Decoder decoder(segment, {}, {.traversal_words = wire::kMaxRecordWords});
  return wire::decode_side(decoder, wire::kContextInSegment);
}

void record_comes_back(const CallRecord& record) {
  Encoder encoder(wire::kEnvelopeWords);
  wire::encode_side(encoder, wire::kContextPointer, record);
  wire::finish_frame(encoder, {.kind = wire::FrameKind::result});
  require(same(read_side(wire::parse_frame(encoder.words()).segment()), record),
          "a record is another one when written and read again");
}

void read_records(const wire::FrameView& frame) {
  std::vector<CallRecord> records;
  try {
    for (wire::RecordBody& body : wire::read_error_record(frame))
      records.push_back(wire::record_of(std::move(body)));
  } catch (const BadMessage&) {  // NOLINT: so it is refused
  }
  try {
    if (frame.has_context()) records.push_back(read_side(frame.segment()));
  } catch (const BadMessage&) {  // NOLINT: so it is refused
  }
  for (const CallRecord& record : records)
    record_comes_back(record);
}

void read_all(const wire::FrameView& frame) {
  using namespace wire;
  if (frame.has_context()) {
    comes_back<CallContextBody>(frame, read_context, context_words, [](const CallContextBody& it) {
      return std::tie(it.trace, it.metadata, it.record);
    });
  }
  read_records(frame);
  comes_back<Hello>(frame, read_hello, hello_frame, [](const Hello& hello) {
    return std::tie(hello.major, hello.minor, hello.rank, hello.incarnation, hello.session,
                    hello.received, hello.name, hello.job);
  });
  comes_back<Definition>(frame, read_definition, definition_frame, [](const Definition& it) {
    return std::tie(it.number, it.name, it.signature);
  });
  comes_back<ErrorBody>(frame, read_error, error_words, [](const ErrorBody& it) {
    return std::tie(it.code, it.may_have_run, it.message, it.type, it.retry_after);
  });
  comes_back<Goodbye>(frame, read_goodbye, goodbye_frame,
                      [](const Goodbye& it) { return std::tie(it.code, it.reason); });
}

}  // namespace

void frame(Input input) {
  const std::size_t count = input.size() / sizeof(Word);
  if (count == 0) return;
  // In memory of its own size, so that a step outside is seen.
  const auto memory = std::make_unique<Word[]>(count);
  const std::span<Word> words(memory.get(), count);
  std::memcpy(words.data(), input.data(), words.size_bytes());
  const auto size = wire::frame_words(words[0]);
  require(!size || *size >= 1, "a frame without words");
  try {
    const wire::FrameView view = wire::parse_frame(words);
    const std::vector<std::uint64_t> sizes(view.payload_sizes.begin(), view.payload_sizes.end());
    require(sizes.size() <= 4096, "too many payloads");
    require(wire::has_inline_payloads(words) == ((view.header.flags & wire::kInlinePayloads) != 0),
            "payloads are inline for one reader only");
    require(wire::id_of(std::as_bytes(words)) == view.header.id, "two ids");
    read_all(view);
    // What else is done to frames where they lie.
    wire::set_number(words, 7);
    require(wire::parse_frame(words).header.number == 7, "another number");
    wire::make_void(std::as_writable_bytes(words));
    require(wire::frame_words(words[0]) == count, "a void frame of another size");
    require(wire::parse_frame(words).header.kind == wire::FrameKind::pong, "it is not void");
  } catch (const BadMessage&) {
  }
}

}  // namespace batchrpc::fuzz
