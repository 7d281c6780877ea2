#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/raw_peer.hpp"

namespace batchrpc::test {

inline int twice(int x) { return static_cast<int>(2 * std::int64_t{x}); }  // random ones too

/// A node in virtual time for RawPeers to talk to.
struct RawTarget {
  explicit RawTarget(LogLevel log_level = LogLevel::debug) : node(make(log_level)) {}

  VirtualWorld world;
  Node node;

  Node make(LogLevel log_level) const {
    NodeOptions options = world.options("root");
    options.log_level = log_level;
    options.max_frame_bytes = 64 * 1024;
    options.max_payload_bytes = 64 * 1024;
    Node made(options);
    made.expose("twice", twice);
    made.expose("size", [](const Bytes& bytes) { return bytes.size(); });
    return made;
  }
  /// A correct node joins, and its call works.
  void next_call_works() const {
    const Node peer = world.join("peer");
    CHECK(peer.call<int(int)>("root", "twice", 4).get() == 8);
    CHECK(peer.call<std::size_t(Bytes)>("root", "size", Bytes::allocate(30'000)).get() == 30'000);
  }
};

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
