#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/torch/tensor_header.hpp"
#include "batchrpc/wire/signature.hpp"
#include "blob.hpp"
#include "fuzz/conversation.hpp"
#include "node/raw_frames.hpp"
#include "rref/rref_messages.hpp"
#include "wire/every_type.hpp"
#include "wire/record.hpp"
#ifdef BATCHRPC_HAS_TLS
#include "fuzz/certificate_corpus.hpp"
#include "fuzz/tls_corpus.hpp"
#endif

// Writes what fuzzing starts from: write_corpus tests/fuzz/corpus

namespace batchrpc::fuzz {
namespace {

using test::call_frame;
using test::define;
using wire::FrameKind;
using Words = std::vector<Word>;
using detail::HoldUpdate;

class Folder {
 public:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
  }
  void write(const std::string& name, std::string_view first, const std::vector<Words>& frames,
             std::string_view text = {}) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file << first;
    for (const Words& words : frames) {
      file.write(reinterpret_cast<const char*>(words.data()),
                 static_cast<std::streamsize>(words.size() * sizeof(Word)));
    }
    file << text;
    if (!file) throw std::runtime_error("cannot write " + (path_ / name).string());
  }

 private:
  std::filesystem::path path_;
};

template <class... Args>
Words frame_of(wire::FrameHeader header, const Args&... args) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Args...>(encoder, wire::kBodyPointer, args...);
  wire::finish_frame(encoder, header);
  Words words = encoder.words();
  if (wire::has_inline_payloads(words)) {
    for (const Bytes& payload : encoder.payloads())
      words.resize(words.size() + wire::padded(payload.size()) / sizeof(Word), 0x0706050403020100);
  }
  return words;
}

/// The payload of `words`, of 20'000 bytes, becomes one of `size` that comes as chunks.
Words with_payload_of(Words words, std::uint64_t size) {
  words.back() = size;
  return words;
}
Words chunk(std::uint64_t id, std::uint64_t size, std::uint16_t flags = 0) {
  Words words =
      wire::plain_frame({.kind = FrameKind::chunk, .flags = flags, .id = id, .value = size});
  words.resize(words.size() + wire::padded(size) / sizeof(Word), 0x0706050403020100);
  return words;
}
Words error_of(std::uint64_t id) {
  return wire::error_frame(id, std::make_exception_ptr(std::runtime_error("it does not go")));
}
Bytes zeros(std::size_t size) { return Bytes::copy(std::vector<std::byte>(size)); }
const auto& large() {
  static const Bytes bytes = zeros(20'000);
  return bytes;
}

// What a callee tells of a call; at the end of so many calls, each made by the one before.
CallRecord record_of(int depth) {
  const auto at = [](int microseconds) {
    return TimePoint(std::chrono::microseconds(microseconds));
  };
  CallRecord record;
  record.function = "f";
  record.caller = {.node = "root", .rank = 0, .process = 1, .thread = 2};
  record.callee = {.node = "raw", .rank = 1, .process = 3, .thread = 4};
  record.received = at(1);
  record.begun = at(2);
  record.finished = at(9);
  record.left_out = 3;
  record.batch = {.number = 7, .rows = 2, .begin = at(3), .end = at(8)};
  record.operators.push_back({.name = "aten::add", .begin = at(4), .end = at(5), .thread = 4});
  record.operators.push_back({.name = "aten::mul", .begin = at(5), .end = at(6), .shared = true});
  if (depth == 0) return record;
  CallRecord& made = record.calls.emplace_back(record_of(depth - 1));
  made.called = made.encoded = at(2);
  made.sent = at(3);
  made.replied = at(7);
  made.ended = at(8);
  made.error = depth == 1 ? "TimedOut" : "";
  return record;
}

template <class Result>
Words recorded_result(std::uint64_t id, const Result& result, int depth) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Result>(encoder, wire::kBodyPointer, result);
  wire::encode_side(encoder, wire::kContextPointer, record_of(depth));
  wire::finish_frame(encoder, {.kind = FrameKind::result, .id = id});
  return encoder.words();
}
Words recorded_error(std::uint64_t id) {
  const CallRecord record = record_of(1);
  return wire::error_frame(id, std::make_exception_ptr(std::runtime_error("no")), true, &record);
}

template <class... Args>
Words call_with_context(wire::FrameHeader header, wire::RecordWish wish, int entries,
                        const Args&... args) {
  wire::CallContextBody context{.record = wish};
  context.trace = *TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  for (int i = 0; i < entries; ++i)
    context.metadata.emplace_back("key" + std::to_string(i), "value");
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Args...>(encoder, wire::kBodyPointer, args...);
  wire::add_context(encoder, context);
  header.kind = FrameKind::call;
  wire::finish_frame(encoder, header);
  return encoder.words();
}

void write_frames(const Folder& folder) {
  folder.write("hello", "",
               {wire::hello_frame({.incarnation = 3, .session = 4, .name = "a", .job = "job"})});
  folder.write("define", "", {define(1, "add", "i32(i32,i32)")});
  folder.write("call", "", {call_frame({.number = 1, .id = 5, .value = 1000}, 7)});
  folder.write("call-payload", "", {call_frame({.number = 1, .id = 5}, large())});
  folder.write("result", "", {frame_of({.kind = FrameKind::result, .id = 5}, std::string("text"))});
  folder.write("error", "", {error_of(5)});
  folder.write("call-context", "",
               {call_with_context({.number = 1, .id = 5}, wire::RecordWish::operators, 2, 7)});
  folder.write("result-record", "", {recorded_result(5, std::string("text"), 2)});
  folder.write("error-record", "", {recorded_error(5)});
  folder.write("goodbye", "", {wire::goodbye_frame({.code = 12, .reason = "it shuts down"})});
  folder.write("ping", "", {wire::plain_frame({.kind = FrameKind::ping})});
  folder.write("credit", "", {wire::plain_frame({.kind = FrameKind::credit, .id = 5})});
  folder.write("chunk", "", {wire::plain_frame({.kind = FrameKind::chunk, .id = 5, .value = 8})});
}

template <std::size_t... I>
void write_values(const Folder& folder, std::index_sequence<I...>) {
  const auto write = [&]<class T>(std::size_t index, std::type_identity<T>) {
    for (std::uint64_t seed = 1; seed < 100; ++seed) {  // until one is small, but not empty
      wire_test::Random random(seed);
      Encoder encoder(1);
      encode_struct<T>(encoder, 0, wire_test::make<T>(random, 3));
      if (encoder.words().size() > 60 || (encoder.words().size() < 3 && seed < 50)) continue;
      const std::string first{static_cast<char>(index),
                              static_cast<char>(4 + encoder.payloads().size())};
      folder.write("type" + std::to_string(index), first, {encoder.words()});
      return;
    }
  };
  (write(I, std::type_identity<std::tuple_element_t<I, wire_test::EveryType>>()), ...);
}

void write_tensors(const Folder& folder) {
  const std::vector<std::int64_t> two{2, 3};
  const std::vector<std::int64_t> empty{3, 0, 2};
  const std::vector<std::int64_t> large{1 << 20, 1 << 20, 1 << 20};
  std::size_t number = 0;
  for (const auto& sizes : {std::vector<std::int64_t>(), two, empty, large,
                            std::vector<std::int64_t>(64, 1), std::vector<std::int64_t>{-1}}) {
    for (const std::uint8_t type : {std::uint8_t{0}, std::uint8_t{9}, std::uint8_t{13}}) {
      Encoder encoder(1);
      encode_struct(encoder, 0, detail::TensorHeader{type, type == 9, 0, sizes});
      // The first byte: how many bytes came for it.
      folder.write("header" + std::to_string(++number), std::string(1, type == 9 ? 24 : 96),
                   {encoder.words()});
    }
  }
}

void write_conversations(const Folder& folder) {
  const auto first = [](unsigned manner, unsigned piece) {
    return std::string{static_cast<char>(manner), static_cast<char>(piece)};
  };
  const auto hello = wire::hello_frame({.incarnation = 3, .session = 4, .name = "stranger"});
  const std::vector<Words> stranger{hello, define(0, "twice", signature<int, int>()),
                                    call_frame({.number = 0, .id = 8}, 21),
                                    wire::plain_frame({.kind = FrameKind::ping})};
  folder.write("stranger", first(kReads, 0), stranger);
  folder.write("stranger-pieces", first(kReads, 3), stranger);
  folder.write("two-hellos", first(kReads, 0), {hello, hello});
  folder.write("other-major", first(0, 0), {wire::hello_frame({.major = 2, .name = "new"})});
  folder.write("no-session", first(kReads, 0),
               {wire::hello_frame({.incarnation = 3, .name = "stranger"})});
  folder.write("newer", first(kReads, 0),
               {wire::hello_frame({.minor = 9, .incarnation = 5, .session = 4, .name = "newer"}),
                wire::plain_frame({.kind = FrameKind::acknowledge, .id = 5})});
  folder.write("http", first(0, 0), {}, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");

  const detail::ObjectId object{.owner = kOwner, .creator = 77, .number = 1};
  const std::vector<HoldUpdate> updates{
      {object, HoldUpdate::hold, {.parent = kOwner, .number = 1}, {}},
      {object, HoldUpdate::list_begins, {}, {}},
      {object, HoldUpdate::hold, {.parent = 78, .number = 2}, "healthy"},
      {object, HoldUpdate::list_ends, {}, {}},
      {object, HoldUpdate::release, {}, {}}};
  const std::map<std::string, int> more{{"a", 1}, {"b", 2}};
  const std::vector<Words> calls{
      call_frame({.number = kTwice, .id = 10, .value = 1'000'000}, 21),
      call_frame({.number = kSize, .id = 11}, zeros(40)),
      call_frame({.number = kBlob, .id = 14}, test::Blob{zeros(41)}),
      frame_of({.kind = FrameKind::call, .number = kShout, .id = 12}, std::string("quiet"),
               std::vector<std::string>{"a", "b"}, std::optional<double>(2.5)),
      call_frame({.flags = wire::kNoReply, .number = kTwice, .id = 13}, 1),
      wire::plain_frame({.kind = FrameKind::ping})};
  const std::vector<Words> chunks{
      with_payload_of(call_frame({.number = kSize, .id = 20}, large()), 100), chunk(20, 64),
      chunk(20, 36), with_payload_of(call_frame({.number = kWorker, .id = 21}, large()), 48),
      chunk(21, 48)};
  const std::vector<Words> taken_back{
      frame_of({.kind = FrameKind::call, .number = kHold, .id = 30}),
      wire::plain_frame({.kind = FrameKind::cancel, .id = 30}),
      with_payload_of(call_frame({.number = kSize, .id = 31}, large()), 100), chunk(31, 64),
      wire::plain_frame({.kind = FrameKind::cancel, .id = 31})};
  const std::vector<Words> objects{
      frame_of({.kind = FrameKind::call, .number = kCreate, .id = 40}, object,
               std::string("thing")),
      with_payload_of(
          frame_of({.kind = FrameKind::call, .number = kPut, .id = 41}, object, large(), more), 40),
      frame_of({.kind = FrameKind::call, .number = kPut, .id = 42}, object, zeros(8), more),
      chunk(41, 40), call_frame({.flags = wire::kNoReply, .number = kUpdate, .id = 43}, updates)};
  detail::ObjectId nobodys = object;  // incarnations are not zero
  nobodys.creator = 0;
  const std::vector<Words> impossible{
      call_frame({.flags = wire::kNoReply, .number = kUpdate, .id = 50},
                 std::vector<HoldUpdate>{{nobodys, HoldUpdate::hold, {}, {}}})};
  const detail::Fork fork{.parent = kOwner, .number = 1};
  const detail::NoObject none{object, std::uint16_t{9}, "why", "std::logic_error", "what made it"};
  const std::vector<Words> forks{
      call_frame({.flags = wire::kNoReply, .number = kArrived, .id = 60},
                 std::vector<detail::Fork>{fork}),
      call_frame({.number = kAsk, .id = 61},
                 std::vector<detail::ForkQuestion>{{object, fork}, {object, {77, 2}}}),
      call_frame({.flags = wire::kNoReply, .number = kNone, .id = 62},
                 std::vector<detail::NoObject>{none}),
      call_frame({.number = kReady, .id = 63}, object),
      call_frame({.flags = wire::kNoReply, .number = kAbandon, .id = 64}, none)};
  const std::vector<Words> answers{
      frame_of({.kind = FrameKind::result, .id = 1}, 8),
      wire::plain_frame({.kind = FrameKind::credit, .id = 2, .value = wire::kNoCredit}),
      wire::plain_frame({.kind = FrameKind::credit, .id = 2, .value = wire::kAllCredit}),
      with_payload_of(frame_of({.kind = FrameKind::result, .id = 2}, large()), 80),
      chunk(2, 40, wire::kOfReply),
      chunk(2, 40, wire::kOfReply),
      frame_of({.kind = FrameKind::result, .id = 3}, std::vector<std::string>{"b", "c"})};
  const std::vector<Words> errors{error_of(1), error_of(2), error_of(3),
                                  wire::goodbye_frame({.code = 12, .reason = "it shuts down"})};
  using wire::RecordWish;
  const std::vector<std::string> quiet{"b"};
  const std::vector<Words> contexts{
      call_with_context({.number = kTwice, .id = 10}, RecordWish::operators, 2, 21),
      call_with_context({.number = kTwice, .id = 11}, RecordWish::times, 0, 5),
      call_with_context({.number = kTwice, .id = 12}, RecordWish::none, 64, 5),
      call_with_context({.number = kShout, .id = 13}, RecordWish::operators, 1,
                        std::string("quiet"), quiet, std::optional<double>(2.5)),
      call_with_context({.flags = wire::kNoReply, .number = kTwice, .id = 14},
                        RecordWish::operators, 1, 5),
      call_with_context({.number = kHold, .id = 15}, RecordWish::operators, 1),
      wire::plain_frame({.kind = FrameKind::cancel, .id = 15}),
      call_with_context({.number = kTwice, .id = 16}, RecordWish::operators, 65, 21)};
  const std::vector<Words> records{recorded_result(1, 8, 2), recorded_error(2),
                                   recorded_result(3, quiet, 9)};
  struct Part {
    const char* name;
    const std::vector<Words>& frames;
    unsigned manner;
  };
  for (const Part& part :
       {Part{"calls", calls, 0}, Part{"chunks", chunks, 0}, Part{"taken-back", taken_back, 0},
        Part{"objects", objects, 0}, Part{"impossible", impossible, 0}, Part{"forks", forks, 0},
        Part{"answers", answers, kIsCalled}, Part{"errors", errors, kIsCalled},
        Part{"contexts", contexts, kProfiled}, Part{"records", records, kIsCalled | kProfiled}}) {
    const unsigned manner = part.manner | kIntroduced;
    folder.write(part.name, first(manner | kReads, 0), part.frames);
    folder.write(std::string(part.name) + "-pieces", first(manner | kBreaksOff, 5), part.frames);
    folder.write(std::string(part.name) + "-narrow", first(manner | kNarrow, 0), part.frames);
  }
}

void write_sessions(const Folder& folder) {
  const auto connection = [](unsigned begin, unsigned received, const std::vector<Words>& frames) {
    std::string sent;
    for (const Words& words : frames)
      sent.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(Word));
    std::string all{static_cast<char>(begin), static_cast<char>(received),
                    static_cast<char>(sent.size() & 255U), static_cast<char>(sent.size() >> 8U)};
    return all + sent;
  };
  const Words call = call_frame({.number = 0, .id = 10}, 21);
  const Words echo = call_frame({.number = 1, .id = 11}, Bytes::allocate(3000));
  const auto acknowledge = [](std::uint64_t received) {
    return wire::plain_frame({.kind = FrameKind::acknowledge, .acknowledged = received});
  };
  const std::string first = connection(kHello | kDefines, 0, {call, echo});
  const auto write = [&](const std::string& name, const std::string& next) {
    folder.write(name, first + next, {});
  };
  folder.write("fresh", first, {});
  write("goes-on", connection(kHello | kResumes, 0, {call}));
  write("goes-on-late", connection(kHello | kResumes | kLater, 2, {echo, acknowledge(3)}));
  write("has-all", connection(kHello | kResumes, 3, {call, acknowledge(4)}));
  write("first-answer-lost", connection(kHello, 0, {call}));
  write("beside", connection(kHello | kResumes | kBeside, 1, {call, call}));
  write("never-was", connection(kHello | kResumes, 99, {call}));
  write("goes-back", connection(kHello | kResumes, 3, {acknowledge(3)}) +
                         connection(kHello | kResumes, 1, {call}));
  write("other-session", connection(kHello | kResumes | kOther, 0, {call}));
  write("other-life", connection(kHello | kResumes | kLives, 0, {call}));
  write("acknowledges-too-much", connection(kHello | kResumes, 1, {acknowledge(200)}));
  write("no-hello", connection(0, 0, {call}) + connection(kHello | kResumes, 0, {call}));
  write("cut-off", connection(kHello | kResumes, 1, {Words(call.begin(), call.end() - 2)}) +
                       connection(kHello | kResumes | kBeside, 2, {call}));
  std::string many = first;
  for (unsigned i = 0; i < 10; ++i)
    many +=
        connection(kHello | kResumes | (i % 2 != 0 ? unsigned{kBeside} : 0U), i / 2, {call, echo});
  folder.write("many", many, {});
}

}  // namespace
}  // namespace batchrpc::fuzz

int main(int argc, char** argv) try {
  using namespace batchrpc::fuzz;
  if (argc != 2) throw std::invalid_argument("usage: write_corpus <folder>");
  const std::filesystem::path path = argv[1];
  write_frames(Folder(path / "frame"));
  write_values(Folder(path / "codec"),
               std::make_index_sequence<std::tuple_size_v<batchrpc::wire_test::EveryType>>{});
  write_tensors(Folder(path / "tensor"));
  write_conversations(Folder(path / "connection"));
  write_sessions(Folder(path / "session"));
#ifdef BATCHRPC_HAS_TLS
  for (const auto& [file, bytes] : tls_record_inputs())
    Folder(path / "tls_records").write(file, bytes, {});
  for (const CertificateInput& input : certificate_inputs())
    Folder(path / "certificate_name").write(input.file, input.bytes, {});
#endif
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
