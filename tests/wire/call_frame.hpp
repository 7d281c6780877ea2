#pragma once

#include <string>
#include <utility>
#include <vector>

#include "batchrpc/wire/codec.hpp"
#include "wire/frame.hpp"

namespace batchrpc::test {

/// A call frame with arguments (int32, text) and payloads of the given sizes.
inline std::vector<Word> call_frame(std::vector<Bytes> payloads, wire::FrameHeader header) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<std::int32_t, std::string>(encoder, wire::kBodyPointer, 42, std::string("answer"));
  encoder.payloads() = std::move(payloads);
  header.kind = wire::FrameKind::call;
  wire::finish_frame(encoder, header);
  return encoder.words();
}

}  // namespace batchrpc::test
