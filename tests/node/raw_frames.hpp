#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/wire/codec.hpp"
#include "batchrpc/wire/signature.hpp"
#include "peers/member.hpp"
#include "wire/frame.hpp"

/// Frames as a peer sends them.
namespace batchrpc::test {

inline std::vector<Word> define(std::uint32_t number, const std::string& name,
                                std::string_view signature_text) {
  return wire::definition_frame(
      {.number = number, .name = name, .signature = std::string(signature_text)});
}

/// The frame of a call whose arguments are encoded, and the bytes of its inline payloads behind it.
inline std::vector<Word> finished_call(Encoder& encoder, wire::FrameHeader header) {
  header.kind = wire::FrameKind::call;
  wire::finish_frame(encoder, header);
  std::vector<Word> words = encoder.words();
  if (wire::has_inline_payloads(words)) {
    for (const Bytes& payload : encoder.payloads())
      words.resize(words.size() + wire::padded(payload.size()) / sizeof(Word));
  }
  return words;
}

/// The same with these arguments.
template <class... Args>
std::vector<Word> call_frame(const wire::FrameHeader& header, const Args&... arguments) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Args...>(encoder, wire::kBodyPointer, arguments...);
  return finished_call(encoder, header);
}

/// What makes the peer "raw", of incarnation 1, a member of the group, so that it may be called: it
/// numbers the function that joins, and calls it.
inline std::vector<Word> join_as_raw(std::uint32_t number, std::uint64_t id) {
  std::vector<Word> words =
      define(number, "batchrpc.join", signature<JoinReply, Member, std::int32_t>());
  const std::vector<Word> call = call_frame(
      {.number = number, .id = id}, Member{.name = "raw", .incarnation = 1}, std::int32_t{0});
  words.insert(words.end(), call.begin(), call.end());
  return words;
}

}  // namespace batchrpc::test
