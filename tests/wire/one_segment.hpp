#pragma once

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "batchrpc/wire/encoder.hpp"

namespace batchrpc::test {

/// Copies a message of any number of segments, in Cap'n Proto's stream framing, into one segment,
/// as our decoder reads it: its first word is the root pointer.
inline std::vector<Word> one_segment(std::span<const std::byte> message) {
  std::vector<capnp::word> words(message.size() / sizeof(capnp::word));
  std::memcpy(words.data(), message.data(), words.size() * sizeof(capnp::word));
  capnp::FlatArrayMessageReader reader(kj::arrayPtr(words.data(), words.size()));
  const auto root = reader.getRoot<capnp::AnyPointer>();
  capnp::MallocMessageBuilder builder(static_cast<unsigned>(1 + root.targetSize().wordCount));
  builder.initRoot<capnp::AnyPointer>().set(root);
  const auto segments = builder.getSegmentsForOutput();
  if (segments.size() != 1) throw std::logic_error("the message does not fit into one segment");
  std::vector<Word> result(segments[0].size());
  std::memcpy(result.data(), segments[0].begin(), result.size() * sizeof(Word));
  return result;
}

}  // namespace batchrpc::test
