#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/wire/codec.hpp"
#include "batchrpc/wire/signature.hpp"
#include "blob.hpp"
#include "peers/member.hpp"
#include "wire/frame.hpp"

// Writes what a node of this version sends, a file for each thing that it says: frames, with all
// that follows them. record_frames FOLDER writes to FOLDER/<major>.<minor>. Earlier versions are
// compiled with this file too (scripts/record_frames.sh), so it uses what all of them have. What
// the files are for: tests/node/version_skew_test.cpp.

namespace batchrpc {
namespace {

using wire::FrameKind;
using Words = std::vector<Word>;

Bytes counted(std::size_t size) {
  Bytes bytes = Bytes::allocate(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes.mutable_data()[i] = static_cast<std::byte>(i);
  return bytes;
}

void append(Words& words, std::span<const std::byte> bytes) {
  const std::size_t at = words.size();
  words.resize(at + wire::padded(bytes.size()) / sizeof(Word));
  std::memcpy(words.data() + at, bytes.data(), bytes.size());
}

Words chunk(std::uint64_t id, std::uint16_t flags, std::span<const std::byte> bytes) {
  Words words = wire::plain_frame(
      {.kind = FrameKind::chunk, .flags = flags, .id = id, .value = bytes.size()});
  append(words, bytes);
  return words;
}

/// A call or result, with its payload behind it: inline, or all of it in two chunks.
template <class... Args>
Words whole(wire::FrameHeader header, const Args&... args) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Args...>(encoder, wire::kBodyPointer, args...);
  wire::finish_frame(encoder, header);
  Words words = encoder.words();
  const bool are_inline = wire::has_inline_payloads(words);
  for (const Bytes& payload : encoder.payloads()) {
    if (are_inline) {
      append(words, payload.span());
      continue;
    }
    const std::uint16_t flags = header.kind == FrameKind::result ? wire::kOfReply : 0;
    for (const auto& part : {payload.span().first(10'000), payload.span().subspan(10'000)}) {
      const Words more = chunk(header.id, flags, part);
      words.insert(words.end(), more.begin(), more.end());
    }
  }
  return words;
}

Words define(std::uint32_t number, const std::string& name, std::string_view signature) {
  return wire::definition_frame(
      {.number = number, .name = name, .signature = std::string(signature)});
}

class Recording {
 public:
  explicit Recording(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void write(const std::string& name, const std::vector<Words>& frames) const {
    std::ofstream file(folder_ / (name + ".bin"), std::ios::binary);
    for (const Words& words : frames) {
      file.write(reinterpret_cast<const char*>(words.data()),
                 static_cast<std::streamsize>(words.size() * sizeof(Word)));
    }
    if (!file) throw std::runtime_error("cannot write " + (folder_ / name).string());
  }

 private:
  std::filesystem::path folder_;
};

// Whose node is named "recorded" and has the incarnation 41.
void record(const Recording& to) {
  const Member member{.name = "recorded",
                      .rank = -1,
                      .incarnation = 41,
                      .host = "elsewhere",
                      .addresses = {"inproc://recorded"}};
  to.write(
      "hello",
      {wire::hello_frame({.incarnation = 41, .session = 43, .joins = true, .name = "recorded"})});
  to.write("define", {define(0, "batchrpc.join", signature<JoinReply, Member, std::int32_t>()),
                      define(1, "twice", signature<int, int>()),
                      define(2, "size", signature<std::size_t, Bytes>()),
                      define(3, "fail", signature<void>()), define(4, "missing", signature<void>()),
                      define(5, "blob", signature<std::size_t, test::Blob>())});
  to.write("join", {whole({.kind = FrameKind::call, .number = 0, .id = 100, .value = 60'000'000},
                          member, std::int32_t{0})});
  to.write("call",
           {whole({.kind = FrameKind::call, .number = 1, .id = 101, .value = 1'000'000}, 21)});
  to.write("call_inline",
           {whole({.kind = FrameKind::call, .number = 5, .id = 102}, test::Blob{counted(999)})});
  to.write("call_chunks",
           {whole({.kind = FrameKind::call, .number = 2, .id = 103}, counted(17'001))});
  to.write("call_fails", {whole({.kind = FrameKind::call, .number = 3, .id = 104})});
  to.write("call_missing", {whole({.kind = FrameKind::call, .number = 4, .id = 105})});
  to.write("notification",
           {whole({.kind = FrameKind::call, .flags = wire::kNoReply, .number = 1, .id = 106}, 4)});
  // The ids are the callee's in this conversation, and are put in when it is replayed.
  to.write("result", {whole({.kind = FrameKind::result, .id = 1}, 42)});
  to.write("result_inline",
           {whole({.kind = FrameKind::result, .id = 1}, test::Blob{counted(999)})});
  to.write("result_chunks", {whole({.kind = FrameKind::result, .id = 1}, counted(17'001))});
  to.write("error",
           {wire::error_frame(1, std::make_exception_ptr(std::runtime_error("it broke")), true)});
  to.write("ping", {wire::plain_frame({.kind = FrameKind::ping})});
  to.write("pong", {wire::plain_frame({.kind = FrameKind::pong})});
  to.write("goodbye", {wire::goodbye_frame({.code = 12, .reason = "recorded shuts down"})});
  Words cut = whole({.kind = FrameKind::call, .number = 2, .id = 107}, counted(17'001));
  const Words second = chunk(107, 0, counted(17'001).span().subspan(10'000));
  cut.resize(cut.size() - second.size());
  to.write("call_cancelled", {cut, wire::plain_frame({.kind = FrameKind::cancel, .id = 107})});
  to.write("credit_none", {wire::plain_frame({.kind = FrameKind::credit, .id = 1, .value = 0})});
  to.write("credit_all",
           {wire::plain_frame({.kind = FrameKind::credit, .id = 1, .value = ~std::uint64_t{0}})});
}

}  // namespace
}  // namespace batchrpc

int main(int argc, char** argv) try {
  if (argc != 2) throw std::invalid_argument("usage: record_frames <folder>");
  const auto version =
      std::to_string(batchrpc::wire::kMajor) + "." + std::to_string(batchrpc::wire::kMinor);
  batchrpc::record(batchrpc::Recording(std::filesystem::path(argv[1]) / version));
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
