#include "wire/record.hpp"

#include <capnp/message.h>
#include <capnp/schema.h>
#include <capnp/serialize.h>

#include <catch2/catch.hpp>
#include <random>

#include "batchrpc/base/error.hpp"
#include "wire/frame.capnp.h"
#include "wire/frame.hpp"

// What goes with calls and replies beside arguments and results. The reference: what the Cap'n
// Proto compiler makes of src/wire/frame.capnp.
namespace batchrpc {
namespace record_test {

using wire::FrameKind;

capnp::FlatArrayMessageReader reader_of(std::span<const Word> frame) {
  return capnp::FlatArrayMessageReader(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(frame.data()), frame.size()));
}

TimePoint at(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }

class RandomRecords {
 public:
  explicit RandomRecords(std::uint64_t seed) : random_(seed) {}

  CallRecord make(int depth) {
    CallRecord record;
    record.function = text();
    record.caller = place();
    record.callee = place();
    for (std::uint8_t& byte : record.span.trace_id)
      byte = static_cast<std::uint8_t>(random_());
    for (std::uint8_t& byte : record.span.span_id)
      byte = static_cast<std::uint8_t>(random_());
    record.span.flags = 1;
    record.parent = random_();
    for (TimePoint* time : {&record.called, &record.encoded, &record.sent, &record.replied,
                            &record.ended, &record.received, &record.begun, &record.finished,
                            &record.batch.begin, &record.batch.end})
      *time = at(static_cast<std::int64_t>(random_()));
    record.bytes_out = random_();
    record.bytes_in = random_();
    record.error = text();
    record.batch.number = random_();
    record.batch.rows = random_();
    for (std::uint64_t i = random_() % 4; i > 0; --i) {
      record.operators.push_back({.name = text(),
                                  .begin = at(static_cast<std::int64_t>(random_())),
                                  .end = at(static_cast<std::int64_t>(random_())),
                                  .thread = random_(),
                                  .shared = random_() % 2 == 0});
    }
    if (depth > 0) {
      for (std::uint64_t i = random_() % 3; i > 0; --i)
        record.calls.push_back(make(depth - 1));
    }
    record.left_out = random_();
    record.parent_is_external = random_() % 2 == 0;
    record.shared = random_() % 2 == 0;
    return record;
  }

 private:
  std::string text() {
    return std::string(random_() % 20, static_cast<char>('a' + random_() % 26));
  }
  RecordedPlace place() {
    return {.node = text(),
            .rank = static_cast<int>(random_() % 1000) - 1,
            .process = random_(),
            .thread = random_()};
  }

  std::mt19937_64 random_;
};

void check_same(const CallRecord& a, const CallRecord& b) {
  CHECK(wire::bytes_of(a.span) == wire::bytes_of(b.span));
  CHECK(a.function == b.function);
  CHECK(a.caller.node == b.caller.node);
  CHECK(a.caller.rank == b.caller.rank);
  CHECK(a.callee.process == b.callee.process);
  CHECK(a.callee.thread == b.callee.thread);
  CHECK(a.parent == b.parent);
  for (const auto time :
       {&CallRecord::called, &CallRecord::encoded, &CallRecord::sent, &CallRecord::replied,
        &CallRecord::ended, &CallRecord::received, &CallRecord::begun, &CallRecord::finished})
    CHECK(a.*time == b.*time);
  CHECK(a.bytes_out == b.bytes_out);
  CHECK(a.bytes_in == b.bytes_in);
  CHECK(a.error == b.error);
  CHECK(a.parent_is_external == b.parent_is_external);
  CHECK(a.shared == b.shared);
  CHECK(a.batch.number == b.batch.number);
  CHECK(a.batch.rows == b.batch.rows);
  CHECK(a.batch.begin == b.batch.begin);
  CHECK(a.batch.end == b.batch.end);
  CHECK(a.left_out == b.left_out);
  REQUIRE(a.operators.size() == b.operators.size());
  for (std::size_t i = 0; i < a.operators.size(); ++i) {
    CHECK(a.operators[i].name == b.operators[i].name);
    CHECK(a.operators[i].begin == b.operators[i].begin);
    CHECK(a.operators[i].end == b.operators[i].end);
    CHECK(a.operators[i].thread == b.operators[i].thread);
    CHECK(a.operators[i].shared == b.operators[i].shared);
  }
  REQUIRE(a.calls.size() == b.calls.size());
  for (std::size_t i = 0; i < a.calls.size(); ++i)
    check_same(a.calls[i], b.calls[i]);
}

// A result's frame with the callee's side of its call.
std::vector<Word> result_with(const CallRecord& record) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<int>(encoder, wire::kBodyPointer, 42);
  wire::encode_side(encoder, wire::kContextPointer, record);
  wire::finish_frame(encoder, {.kind = FrameKind::result, .id = 7});
  return encoder.words();
}

CallRecord side_in(std::span<const Word> words) {
  const wire::FrameView frame = wire::parse_frame(words);
  Decoder decoder(frame.segment(), {});
  return wire::decode_side(decoder, wire::kContextInSegment);
}

TEST_CASE("a whole record survives the wire") {
  RandomRecords records(1);
  for (int round = 0; round < 50; ++round) {
    const CallRecord record = records.make(3);
    check_same(wire::record_of(wire::body_of(record)), record);
  }
}

TEST_CASE("a result's record is where Cap'n Proto's compiler has put it, and reads the same") {
  RandomRecords records(2);
  const CallRecord record = records.make(2);
  const auto words = result_with(record);
  auto reader = reader_of(words);
  const auto result = reader.getRoot<schema::Frame>().getResult();
  REQUIRE(result.hasRecord());
  const auto theirs = result.getRecord();
  CHECK(theirs.getProcess() == record.callee.process);
  CHECK(theirs.getThread() == record.callee.thread);
  CHECK(theirs.getReceived() == record.received.time_since_epoch().count());
  CHECK(theirs.getBegun() == record.begun.time_since_epoch().count());
  CHECK(theirs.getFinished() == record.finished.time_since_epoch().count());
  CHECK(theirs.getBatch().getNumber() == record.batch.number);
  CHECK(theirs.getBatch().getRows() == record.batch.rows);
  CHECK(theirs.getBatch().getEnd() == record.batch.end.time_since_epoch().count());
  CHECK(theirs.getLeftOut() == record.left_out);
  REQUIRE(theirs.getOperators().size() == record.operators.size());
  for (unsigned i = 0; i < theirs.getOperators().size(); ++i) {
    CHECK(std::string(theirs.getOperators()[i].getName().cStr()) == record.operators[i].name);
    CHECK(theirs.getOperators()[i].getShared() == record.operators[i].shared);
    CHECK(theirs.getOperators()[i].getThread() == record.operators[i].thread);
  }
  REQUIRE(theirs.getCalls().size() == record.calls.size());
  for (unsigned i = 0; i < theirs.getCalls().size(); ++i) {
    const auto call = theirs.getCalls()[i];
    const CallRecord& ours = record.calls[i];
    CHECK(std::string(call.getFunction().cStr()) == ours.function);
    CHECK(std::string(call.getCallee().getNode().cStr()) == ours.callee.node);
    CHECK(call.getCaller().getRank() == ours.caller.rank);
    CHECK(call.getTrace().size() == 25);
    CHECK(call.getTrace()[16] == ours.span.span_id[0]);
    CHECK(call.getParent() == ours.parent);
    CHECK(call.getParentIsExternal() == ours.parent_is_external);
    CHECK(call.getShared() == ours.shared);
    CHECK(call.getCalled() == ours.called.time_since_epoch().count());
    CHECK(call.getEnded() == ours.ended.time_since_epoch().count());
    CHECK(call.getBytesIn() == ours.bytes_in);
    CHECK(std::string(call.getError().cStr()) == ours.error);
    CHECK(call.getRecord().getLeftOut() == ours.left_out);
  }
  Decoder decoder(wire::parse_frame(words).segment(), {});
  CHECK(std::get<0>(decode_struct<int>(decoder, wire::kBodyInSegment)) == 42);
}

TEST_CASE("an error takes the callee's side along") {
  RandomRecords records(3);
  const CallRecord record = records.make(1);
  const auto error = std::make_exception_ptr(std::runtime_error("no"));
  const auto words = wire::error_frame(9, error, true, &record);
  CHECK(wire::read_error(wire::parse_frame(words)).message == "no");
  auto told = wire::read_error_record(wire::parse_frame(words));
  REQUIRE(told.size() == 1);
  const CallRecord read = wire::record_of(std::move(told.front()));
  CHECK(read.received == record.received);
  CHECK(read.operators.size() == record.operators.size());
  auto reader = reader_of(words);
  CHECK(reader.getRoot<schema::Frame>().getError().getRecord().size() == 1);
  CHECK(wire::read_error_record(wire::parse_frame(wire::error_frame(9, error, true))).empty());
}

std::vector<Word> call_with(const wire::CallContextBody& context) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<int>(encoder, wire::kBodyPointer, 1);
  wire::add_context(encoder, context);
  wire::finish_frame(encoder, {.kind = FrameKind::call, .id = 7});
  return encoder.words();
}

TEST_CASE("a call's context is read as it was written, by us and by Cap'n Proto") {
  wire::CallContextBody context;
  context.trace = *TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  context.metadata = {{"user", "ada"}, {"empty", ""}};
  context.record = wire::RecordWish::operators;
  const auto words = call_with(context);
  const wire::FrameView frame = wire::parse_frame(words);
  REQUIRE(frame.has_context());
  const auto read = wire::read_context(frame);
  CHECK(read.trace == context.trace);
  CHECK(read.metadata == context.metadata);
  CHECK(read.record == wire::RecordWish::operators);
  auto reader = reader_of(words);
  const auto theirs = reader.getRoot<schema::Frame>().getCall().getContext();
  CHECK(theirs.getTrace().size() == 25);
  CHECK(theirs.getTrace()[0] == 0x0a);
  CHECK(theirs.getTrace()[24] == 1);
  REQUIRE(theirs.getMetadata().size() == 2);
  CHECK(std::string(theirs.getMetadata()[0].getKey().cStr()) == "user");
  CHECK(std::string(theirs.getMetadata()[0].getValue().cStr()) == "ada");
  CHECK(theirs.getRecord() == 2);
}

TEST_CASE("contexts beyond the limits, or that are none, are bad messages") {
  wire::CallContextBody context;
  context.metadata.assign(wire::kMaxMetadata + 1, {"k", "v"});
  CHECK_THROWS_AS(wire::read_context(wire::parse_frame(call_with(context))), BadMessage);
  context.metadata = {{"k", std::string(wire::kMaxMetadataBytes, 'x')}};
  CHECK_THROWS_AS(wire::read_context(wire::parse_frame(call_with(context))), BadMessage);

  capnp::MallocMessageBuilder message;
  auto call = message.initRoot<schema::Frame>().initCall();
  call.initContext().initTrace(24);  // a byte is missing
  auto flat = capnp::messageToFlatArray(message);
  const std::span words(reinterpret_cast<const Word*>(flat.begin()), flat.size());
  CHECK_THROWS_AS(wire::read_context(wire::parse_frame(words)), BadMessage);
}

TEST_CASE("a record with any word changed is read, or is a bad message") {
  RandomRecords records(4);
  std::mt19937_64 random(4);
  const auto good = result_with(records.make(2));
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto words = good;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      Word& word = words[wire::kContextPointer + random() % (words.size() - wire::kContextPointer)];
      word = random() % 2 == 0 ? random() : word ^ (Word{1} << random() % 64);
    }
    try {
      (void)side_in(words);
      ++read;
    } catch (const BadMessage&) {
    }
  }
  CHECK(read > 0);
  CHECK(read < 20'000);
}

}  // namespace record_test
}  // namespace batchrpc
