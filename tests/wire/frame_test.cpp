#include "wire/frame.hpp"

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/schema.h>
#include <capnp/serialize.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "batchrpc/base/error.hpp"
#include "batchrpc/wire/codec.hpp"
#include "batchrpc/wire/schema.hpp"
#include "wire/call_frame.hpp"
#include "wire/capnp_view.hpp"
#include "wire/frame.capnp.h"
#include "wire/one_segment.hpp"

// The reference throughout: what the Cap'n Proto compiler makes of src/wire/frame.capnp.

namespace batchrpc {
namespace frame_test {

std::vector<std::uint64_t> sizes_of(const wire::FrameView& frame) {
  return {frame.payload_sizes.begin(), frame.payload_sizes.end()};
}

using test::call_frame;
using test::CapnpView;
using wire::FrameHeader;
using wire::FrameKind;
using Which = schema::Frame::Which;

/// A frame that Cap'n Proto's builder has made, as the words that would travel.
std::vector<Word> words_of(capnp::MallocMessageBuilder& message) {
  const auto flat = capnp::messageToFlatArray(message);
  const auto bytes = flat.asBytes();
  const auto segment = test::one_segment(std::as_bytes(std::span(bytes.begin(), bytes.size())));
  std::vector<Word> words{Word{segment.size()} << 32};
  words.insert(words.end(), segment.begin(), segment.end());
  return words;
}

/// Where the compiler has put the field `name` of `structure`, in units of the field's size.
std::uint32_t offset_of(capnp::StructSchema structure, const char* name) {
  const auto field = structure.getFieldByName(name).getProto();
  REQUIRE(field.isSlot());
  return field.getSlot().getOffset();
}

capnp::StructSchema group_of(capnp::StructSchema structure, const char* name) {
  return structure.getFieldByName(name).getType().asStruct();
}

TEST_CASE("the envelope's offsets are those that the Cap'n Proto compiler has chosen") {
  const auto frame = capnp::Schema::from<schema::Frame>();
  const auto layout = frame.getProto().getStruct();
  // The root pointer of every frame says five words of data, three pointers.
  const auto ping = wire::plain_frame({.kind = FrameKind::ping});
  CHECK(layout.getDataWordCount() == 5);
  CHECK(layout.getPointerCount() == 3);
  CHECK(ping[1] ==
        ((Word{layout.getDataWordCount()} << 32) | (Word{layout.getPointerCount()} << 48)));
  CHECK(wire::kEnvelopeWords == 2u + layout.getDataWordCount() + layout.getPointerCount());

  constexpr std::size_t kData = 2;
  CHECK(offset_of(frame, "id") == 0);
  CHECK(offset_of(frame, "sequence") == 1);
  CHECK(offset_of(frame, "acknowledged") == 2);
  CHECK(offset_of(frame, "flags") == 3 * 4);           // bits 0 to 15 of the fourth word
  CHECK(layout.getDiscriminantOffset() == 3 * 4 + 1);  // bits 16 to 31
  CHECK(offset_of(group_of(frame, "call"), "function") == 3 * 2 + 1);  // bits 32 to 63
  CHECK(offset_of(group_of(frame, "chunk"), "payload") == 3 * 2 + 1);
  CHECK(offset_of(group_of(frame, "call"), "timeout") == 4);
  CHECK(offset_of(group_of(frame, "chunk"), "size") == 4);
  CHECK(offset_of(frame, "credit") == 4);

  const std::uint32_t pointers = static_cast<std::uint32_t>(kData + layout.getDataWordCount());
  const auto body = [&](capnp::StructSchema structure, const char* name) {
    return pointers + offset_of(structure, name);
  };
  CHECK(body(group_of(frame, "call"), "arguments") == wire::kBodyPointer);
  CHECK(body(group_of(frame, "result"), "value") == wire::kBodyPointer);
  CHECK(body(group_of(frame, "call"), "payloads") == wire::kBodyPointer + 1);
  CHECK(body(group_of(frame, "result"), "payloads") == wire::kBodyPointer + 1);
  CHECK(body(group_of(frame, "call"), "context") == wire::kBodyPointer + 2);
  for (const char* name : {"hello", "define", "error", "goodbye"}) {
    CHECK(body(frame, name) == wire::kBodyPointer);
  }
}

TEST_CASE("the kinds of frames have the numbers of the schema's union") {
  const std::pair<FrameKind, Which> kinds[] = {
      {FrameKind::hello, Which::HELLO},   {FrameKind::define, Which::DEFINE},
      {FrameKind::call, Which::CALL},     {FrameKind::result, Which::RESULT},
      {FrameKind::error, Which::ERROR},   {FrameKind::chunk, Which::CHUNK},
      {FrameKind::cancel, Which::CANCEL}, {FrameKind::acknowledge, Which::ACKNOWLEDGE},
      {FrameKind::credit, Which::CREDIT}, {FrameKind::ping, Which::PING},
      {FrameKind::pong, Which::PONG},     {FrameKind::goodbye, Which::GOODBYE}};
  CHECK(std::size(kinds) ==
        capnp::Schema::from<schema::Frame>().getProto().getStruct().getDiscriminantCount());
  for (const auto& [ours, theirs] : kinds) {
    CHECK(static_cast<std::uint16_t>(ours) == static_cast<std::uint16_t>(theirs));
  }
}

TEST_CASE("the scalars of every kind of frame round-trip, and Cap'n Proto reads them as we do") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    FrameHeader header;
    header.kind = static_cast<FrameKind>(round % 12);
    header.flags = static_cast<std::uint16_t>(random() & ~std::uint64_t{wire::kInlinePayloads});
    header.number = static_cast<std::uint32_t>(random());
    header.id = random();
    header.sequence = random();
    header.acknowledged = random();
    header.value = random();
    const auto words = wire::plain_frame(header);
    CHECK(wire::frame_words(words[0]) == words.size());

    const wire::FrameView frame = wire::parse_frame(words);
    CHECK(frame.header.kind == header.kind);
    CHECK(frame.header.flags == header.flags);
    CHECK(frame.header.number == header.number);
    CHECK(frame.header.id == header.id);
    CHECK(frame.header.sequence == header.sequence);
    CHECK(frame.header.acknowledged == header.acknowledged);
    CHECK(frame.header.value == header.value);

    CapnpView view(words);
    const auto capnp = *view;
    CHECK(static_cast<std::uint16_t>(capnp.which()) == static_cast<std::uint16_t>(header.kind));
    CHECK(capnp.getFlags() == header.flags);
    CHECK(capnp.getId() == header.id);
    CHECK(capnp.getSequence() == header.sequence);
    CHECK(capnp.getAcknowledged() == header.acknowledged);
    if (header.kind == FrameKind::call) {
      CHECK(capnp.getCall().getFunction() == header.number);
      CHECK(capnp.getCall().getTimeout() == header.value);
    }
    if (header.kind == FrameKind::chunk) {
      CHECK(capnp.getChunk().getPayload() == header.number);
      CHECK(capnp.getChunk().getSize() == header.value);
    }
    if (header.kind == FrameKind::credit) CHECK(capnp.getCredit() == header.value);
  }
}

TEST_CASE("a hello round-trips, both ways with Cap'n Proto") {
  const wire::Hello hello{.rank = -1,
                          .incarnation = 0xfedcba9876543210,
                          .session = 7,
                          .received = 8,
                          .joins = true,
                          .name = "worker \u00fc",
                          .job = "job1",
                          .secret = {.first = 9, .second = 10}};
  const auto words = wire::hello_frame(hello);
  const auto same = wire::read_hello(wire::parse_frame(words));
  CHECK(same.major == wire::kMajor);
  CHECK(same.minor == wire::kMinor);
  CHECK(same.rank == -1);
  CHECK(same.incarnation == hello.incarnation);
  CHECK(same.session == 7);
  CHECK(same.received == 8);
  CHECK(same.name == hello.name);
  CHECK(same.job == "job1");
  CHECK(same.joins);
  CHECK_FALSE(same.resumed);
  CHECK(same.secret == hello.secret);

  CapnpView view(words);
  const auto theirs = (*view).getHello();
  CHECK(theirs.getMajor() == wire::kMajor);
  CHECK(theirs.getMinor() == wire::kMinor);
  CHECK(theirs.getRank() == -1);
  CHECK(theirs.getIncarnation() == hello.incarnation);
  CHECK(theirs.getSession() == 7);
  CHECK(theirs.getReceived() == 8);
  CHECK(std::string(theirs.getName().cStr()) == hello.name);
  CHECK(std::string(theirs.getJob().cStr()) == "job1");
  CHECK(theirs.getSecret1() == 9);
  CHECK(theirs.getSecret2() == 10);

  capnp::MallocMessageBuilder message;
  auto built = message.initRoot<schema::Frame>().initHello();
  built.setMajor(3);
  built.setRank(12);
  built.setName("made by Cap'n Proto");
  built.setSecret2(11);
  const auto read = wire::read_hello(wire::parse_frame(words_of(message)));
  CHECK(read.major == 3);
  CHECK(read.rank == 12);
  CHECK(read.name == "made by Cap'n Proto");
  CHECK(read.job.empty());
  CHECK(read.secret == Secret{.first = 0, .second = 11});
}

TEST_CASE("definitions, errors and goodbyes round-trip, both ways with Cap'n Proto") {
  const auto definition =
      wire::definition_frame({.number = 9, .name = "space::add", .signature = "i32(i32,i32)"});
  const auto same = wire::read_definition(wire::parse_frame(definition));
  CHECK(same.number == 9);
  CHECK(same.name == "space::add");
  CHECK(same.signature == "i32(i32,i32)");
  CapnpView view(definition);
  CHECK((*view).getDefine().getNumber() == 9);
  CHECK(std::string((*view).getDefine().getName().cStr()) == "space::add");
  CHECK(std::string((*view).getDefine().getSignature().cStr()) == "i32(i32,i32)");

  const auto goodbye = wire::goodbye_frame({.code = 12, .reason = "that was it"});
  CHECK(wire::read_goodbye(wire::parse_frame(goodbye)).code == 12);
  CHECK(wire::read_goodbye(wire::parse_frame(goodbye)).reason == "that was it");
  CapnpView goodbye_view(goodbye);
  CHECK((*goodbye_view).getGoodbye().getCode() == 12);
  CHECK(std::string((*goodbye_view).getGoodbye().getReason().cStr()) == "that was it");

  const auto error =
      wire::error_frame(77, std::make_exception_ptr(TimedOut("it took too long", true)));
  const auto frame = wire::parse_frame(error);
  CHECK(frame.header.id == 77);
  const auto body = wire::read_error(frame);
  CHECK(body.code == static_cast<std::uint16_t>(ErrorCode::timed_out));
  CHECK(body.may_have_run);
  CHECK(body.message == "it took too long");
  CapnpView error_view(error);
  CHECK((*error_view).getError().getCode() == static_cast<std::uint16_t>(ErrorCode::timed_out));
  CHECK((*error_view).getError().getMayHaveRun());
  CHECK(std::string((*error_view).getError().getMessage().cStr()) == "it took too long");

  capnp::MallocMessageBuilder message;
  auto built = message.initRoot<schema::Frame>();
  built.setId(5);
  auto theirs = built.initError();
  theirs.setCode(1);
  theirs.setMayHaveRun(true);
  theirs.setMessage("thrown");
  theirs.setType("std::out_of_range");
  const auto words = words_of(message);
  const auto read = wire::read_error(wire::parse_frame(words));
  CHECK(read.code == 1);
  CHECK(read.message == "thrown");
  CHECK(read.type == "std::out_of_range");
}

TEST_CASE("a call's arguments and payload sizes lie where Cap'n Proto finds them") {
  const std::vector<Bytes> payloads{Bytes::allocate(5), Bytes::allocate(0), Bytes::allocate(300)};
  const auto words = call_frame(payloads, {.flags = wire::kNoReply, .number = 3, .id = 11});
  CapnpView view(words);
  const auto call = (*view).getCall();
  CHECK(call.getFunction() == 3);
  REQUIRE(call.getPayloads().size() == 3);
  CHECK(call.getPayloads()[0] == 5);
  CHECK(call.getPayloads()[1] == 0);
  CHECK(call.getPayloads()[2] == 300);
  const auto arguments = call.getArguments().getAs<capnp::AnyStruct>();
  std::int32_t number = 0;
  std::memcpy(&number, arguments.getDataSection().begin(), sizeof number);
  CHECK(number == 42);
  CHECK(std::string(arguments.getPointerSection()[0].getAs<capnp::Text>().cStr()) == "answer");

  const auto frame = wire::parse_frame(words);
  CHECK(sizes_of(frame) == std::vector<std::uint64_t>{5, 0, 300});
  Decoder decoder(frame.segment(), {});
  const auto [same, text] = decode_struct<std::int32_t, std::string>(decoder, wire::kBodyInSegment);
  CHECK(same == 42);
  CHECK(text == "answer");
}

TEST_CASE("a call that Cap'n Proto's builder has made is read, in several segments too") {
  for (const unsigned first_segment : {1024u, 1u}) {
    capnp::MallocMessageBuilder message(first_segment, capnp::AllocationStrategy::FIXED_SIZE);
    auto frame = message.initRoot<schema::Frame>();
    frame.setId(99);
    frame.setFlags(wire::kInlinePayloads);
    auto call = frame.initCall();
    call.setFunction(4);
    call.setTimeout(1000);
    auto sizes = call.initPayloads(2);
    sizes.set(0, 16);
    sizes.set(1, 24);
    const auto words = words_of(message);
    const auto read = wire::parse_frame(words);
    CHECK(read.header.kind == FrameKind::call);
    CHECK(read.header.id == 99);
    CHECK(read.header.number == 4);
    CHECK(read.header.value == 1000);
    CHECK(sizes_of(read) == std::vector<std::uint64_t>{16, 24});
    CHECK(wire::has_inline_payloads(words));
  }
}

TEST_CASE("small payloads are declared inline, larger ones are not") {
  const auto is_inline = [](std::vector<Bytes> payloads) {
    return wire::has_inline_payloads(call_frame(std::move(payloads), {}));
  };
  CHECK_FALSE(is_inline({}));
  CHECK(is_inline({Bytes::allocate(0)}));
  CHECK(is_inline({Bytes::allocate(wire::kInlinePayloadBytes)}));
  CHECK_FALSE(is_inline({Bytes::allocate(wire::kInlinePayloadBytes + 1)}));
  CHECK_FALSE(is_inline({Bytes::allocate(wire::kInlinePayloadBytes), Bytes::allocate(1)}));
}

TEST_CASE("the id and the function of a finished frame can be set without touching the rest") {
  auto words = call_frame({Bytes::allocate(8)}, {.flags = wire::kNoReply, .value = 5});
  wire::set_id(words, 0x1122334455667788);
  wire::set_number(words, 0xfffffffe);
  const auto frame = wire::parse_frame(words);
  CHECK(frame.header.id == 0x1122334455667788);
  CHECK(frame.header.number == 0xfffffffe);
  CHECK(frame.header.flags == (wire::kNoReply | wire::kInlinePayloads));
  CHECK(frame.header.kind == FrameKind::call);
  CHECK(frame.header.value == 5);
  CapnpView view(words);
  CHECK((*view).getCall().getFunction() == 0xfffffffe);
}

TEST_CASE(
    "a call with too many payloads is refused with a message that says how many it may have") {
  std::vector<Bytes> payloads(4097, Bytes::allocate(1));
  try {
    call_frame(std::move(payloads), {});
    FAIL("it was taken");
  } catch (const InvalidArgument& error) {
    CHECK_THAT(error.what(), Catch::Contains("4096") && Catch::Contains("4097"));
  }
}

TEST_CASE("a captured call decodes with the capnp tool and the function's schema") {
  if (std::string(BATCHRPC_CAPNP_TOOL).empty()) {
    WARN("left out: there is no capnp tool (Debian: capnproto)");
    return;
  }
  const auto folder = std::filesystem::temp_directory_path() /
                      ("batchrpc-frame-test-" + std::to_string(std::random_device{}()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "arguments.capnp")
      << schema_text<double, std::int32_t, std::string>("add");
  // The arguments are a struct of the function's schema: told so, the tool reads all in one go.
  std::stringstream text;
  text << std::ifstream(BATCHRPC_SOURCE_DIR "/src/wire/frame.capnp").rdbuf();
  std::string envelope = text.str();
  const std::string any = "arguments @8 :AnyPointer";
  REQUIRE(envelope.find(any) != std::string::npos);
  envelope.replace(envelope.find(any), any.size(),
                   "arguments @8 :import \"arguments.capnp\".Arguments");
  std::ofstream(folder / "frame.capnp") << envelope;
  const auto words = call_frame({Bytes::allocate(3)}, {.number = 3, .id = 11, .value = 250});
  std::ofstream(folder / "captured", std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()),
             static_cast<std::streamsize>(words.size() * sizeof(Word)));

  const std::string command =
      std::string(BATCHRPC_CAPNP_TOOL) + " decode " + (folder / "frame.capnp").string() +
      " Frame < " + (folder / "captured").string() + " > " + (folder / "decoded").string();
  const int status = std::system(command.c_str());
  std::stringstream decoded;
  decoded << std::ifstream(folder / "decoded").rdbuf();
  std::filesystem::remove_all(folder);
  CHECK(status == 0);
  CHECK_THAT(decoded.str(), Catch::Contains("id = 11") && Catch::Contains("function = 3") &&
                                Catch::Contains("timeout = 250") && Catch::Contains("arg0 = 42") &&
                                Catch::Contains("arg1 = \"answer\"") &&
                                Catch::Contains("payloads = [3]"));
}

}  // namespace frame_test
}  // namespace batchrpc
