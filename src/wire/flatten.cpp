#include "wire/flatten.hpp"

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>
#include <string>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

constexpr int kNesting = 64;

std::vector<Word> copy_into_one_segment(kj::ArrayPtr<const capnp::word> message,
                                        std::size_t traversal_limit_words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = traversal_limit_words;
  options.nestingLimit = kNesting;
  std::size_t words = 1;  // the root pointer's
  {
    // To measure it takes as much of the traversal limit as to copy it: each has a reader of its
    // own.
    capnp::FlatArrayMessageReader reader(message, options);
    words += reader.getRoot<capnp::AnyPointer>().targetSize().wordCount;
  }
  capnp::MallocMessageBuilder builder(static_cast<unsigned>(words));
  capnp::FlatArrayMessageReader reader(message, options);
  builder.initRoot<capnp::AnyPointer>().set(reader.getRoot<capnp::AnyPointer>());
  const auto segments = builder.getSegmentsForOutput();
  if (segments.size() != 1) throw BadMessage("a message of several segments does not fit into one");
  std::vector<Word> result(segments[0].size());
  std::memcpy(result.data(), segments[0].begin(), result.size() * sizeof(Word));
  return result;
}

}  // namespace

std::vector<Word> flatten(std::span<const std::byte> stream_framed_message,
                          std::size_t traversal_limit_words) {
  // Cap'n Proto reads words: bytes that do not lie at a word's boundary are moved there.
  const std::size_t count = stream_framed_message.size() / sizeof(capnp::word);
  std::vector<Word> moved;
  const void* words = stream_framed_message.data();
  if (reinterpret_cast<std::uintptr_t>(words) % alignof(capnp::word) != 0) {
    moved.resize(count);
    if (count != 0) std::memcpy(moved.data(), words, count * sizeof(Word));
    words = moved.data();
  }
  try {
    return copy_into_one_segment(kj::arrayPtr(static_cast<const capnp::word*>(words), count),
                                 traversal_limit_words);
  } catch (const kj::Exception& error) {
    throw BadMessage(std::string("a message does not decode: ") + error.getDescription().cStr());
  }
}

}  // namespace batchrpc
