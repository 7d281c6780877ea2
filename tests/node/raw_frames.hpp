#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/wire/codec.hpp"
#include "wire/frame.hpp"

/// Frames as a peer sends them.
namespace batchrpc::test {

inline std::vector<Word> define(std::uint32_t number, const std::string& name,
                                std::string_view signature_text) {
  return wire::definition_frame(
      {.number = number, .name = name, .signature = std::string(signature_text)});
}

/// The frame of a call with one argument, and the bytes of its inline payloads behind it.
template <class T>
std::vector<Word> call_frame(wire::FrameHeader header, const T& argument) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<T>(encoder, wire::kBodyPointer, argument);
  header.kind = wire::FrameKind::call;
  wire::finish_frame(encoder, header);
  std::vector<Word> words = encoder.words();
  if (wire::has_inline_payloads(words)) {
    for (const Bytes& payload : encoder.payloads())
      words.resize(words.size() + wire::padded(payload.size()) / sizeof(Word));
  }
  return words;
}

}  // namespace batchrpc::test
