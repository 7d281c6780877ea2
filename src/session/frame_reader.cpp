#include "session/frame_reader.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "session/scratch.hpp"

namespace batchrpc {
namespace {

// A frame that might not fit into the read buffer gets a buffer of its own.
constexpr std::size_t kLargeFrameBytes = ReadBuffer::kBytes / 2;
static_assert(kLargeFrameBytes + wire::kInlinePayloadBytes <= ReadBuffer::kBytes);

// The most bytes to read behind a payload that is read directly into its place. They hold the
// header of the next chunk, say, but not its bytes, which would have to be copied.
constexpr std::size_t kReadBehind = 4096;

}  // namespace

bool FrameReader::Round::give_back() {
  if (is_over()) return false;
  given_back_ = true;
  reader_.partial_.assign(rest_.begin(), rest_.end());
  return true;
}

void FrameReader::reset() {
  ++streams_;
  open_ = false;
  bytes_before_hello_ = 0;
  partial_ = std::vector<std::byte>();
  direct_ = Direct::none;
  direct_rest_ = {};
  direct_skip_ = 0;
  large_frame_ = {};
  dropped_ = {};
}

std::span<const std::span<std::byte>> FrameReader::buffers(Round& round) {
  std::size_t count = 0;
  round.offered_ = 0;
  const auto add = [&](std::span<std::byte> buffer) {
    if (buffer.empty()) return;
    round.buffers_[count++] = buffer;
    round.offered_ += buffer.size();
  };
  if (direct_ == Direct::dropped_chunk || direct_ == Direct::dropped_frame) {
    // Only these bytes, so that the next frame begins at the start of the buffer.
    add(round.scratch_.first(std::min<std::uint64_t>(round.scratch_.size(), direct_skip_)));
    return std::span(round.buffers_).first(count);
  }
  const std::size_t have = partial_.size();
  std::copy(partial_.begin(), partial_.end(), round.scratch_.begin());
  partial_.clear();
  round.rest_ = round.scratch_.first(have);
  std::span<std::byte> behind = round.scratch_.subspan(have);
  if (!direct_rest_.empty()) behind = behind.first(std::min(behind.size(), kReadBehind));
  add(direct_rest_);
  add(std::span(round.padding_).first(direct_skip_));
  add(behind);
  return std::span(round.buffers_).first(count);
}

// Takes frames from the unread bytes until the rest is not a whole frame, or the turn is over.
inline void FrameReader::consume_all(Round& round) {
  while (!round.is_over()) {
    const std::size_t before = round.rest_.size();
    if (!consume(round)) break;
    const bool over = round.turn.count_message(before - round.rest_.size());
    if (over && direct_ == Direct::none && !round.rest_.empty()) return;
  }
  if (round.is_over()) return;
  partial_.assign(round.rest_.begin(), round.rest_.end());
  round.rest_ = {};
}

bool FrameReader::take(Round& round, std::size_t bytes) {
  const bool full = bytes == round.offered_;
  if (direct_ == Direct::dropped_chunk || direct_ == Direct::dropped_frame) {
    skip(round.scratch_.first(bytes), round);
    return full;
  }
  const std::size_t direct = std::min(bytes, direct_rest_.size());
  direct_rest_ = direct_rest_.subspan(direct);
  const std::size_t skipped = std::min<std::uint64_t>(bytes - direct, direct_skip_);
  direct_skip_ -= skipped;
  round.rest_ = round.scratch_.first(round.rest_.size() + bytes - direct - skipped);
  if (direct_ == Direct::frame) {
    fill_large_frame(round);
  } else if (direct_ == Direct::chunk && direct_rest_.empty() && direct_skip_ == 0) {
    finish_direct(round);
  }
  consume_all(round);
  return full && !round.is_over();
}

void FrameReader::go_on(Round& round, std::span<const std::byte> unread) {
  if (unread.empty()) {
    std::copy(partial_.begin(), partial_.end(), round.scratch_.begin());
    unread = round.scratch_.first(partial_.size());
    partial_.clear();
  }
  round.rest_ = unread;
  consume_all(round);
}

// Takes one frame from the unread bytes. Returns whether there was one.
bool FrameReader::consume(Round& round) {
  if (round.rest_.size() < sizeof(Word) || direct_ != Direct::none) return false;
  round.frame_ = round.rest_;
  Word first = 0;
  std::memcpy(&first, round.rest_.data(), sizeof first);
  const auto words = wire::frame_words(first);
  if (!words || *words < wire::kEnvelopeWords)
    throw BadMessage("the bytes received are not a batchrpc frame");
  const std::uint64_t limit = open_ ? wire::kMostFrameBytes : limits_.before_hello_bytes;
  if (*words > limit / sizeof(Word)) {
    throw BadMessage("a frame of " + std::to_string(*words * sizeof(Word)) +
                     " bytes is larger than the limit of " + std::to_string(limit) +
                     (open_ ? " of all nodes" : " for frames before the hello"));
  }
  const std::size_t size = *words * sizeof(Word);
  if (size > kLargeFrameBytes) return consume_large(size, round);
  if (round.rest_.size() < size) return false;
  const std::span frame_words(reinterpret_cast<const Word*>(round.rest_.data()), *words);
  const wire::FrameView frame = wire::parse_frame(frame_words);
  std::uint64_t behind = 0;
  if ((frame.header.flags & wire::kInlinePayloads) != 0) {
    for (const std::uint64_t payload : frame.payload_sizes) {
      if (payload > wire::kInlinePayloadBytes)
        throw BadMessage("a payload is too large to be inline");
      behind += wire::padded(payload);
    }
    if (behind > wire::kInlinePayloadBytes) throw BadMessage("inline payloads are too large");
    if (!open_) check_before_hello(size + behind);  // so it is not kept until all of it has come
    if (round.rest_.size() < size + behind) return false;
  }
  const auto payloads = round.rest_.subspan(size, behind);
  round.rest_ = round.rest_.subspan(size + behind);
  if (frame.header.kind == wire::FrameKind::chunk) {
    begin_chunk(frame.header, round);
  } else {
    deliver(frame, payloads, round);
  }
  return true;
}

// Has the rest of a large frame read into memory of its own, or dropped. Returns whether there may
// be another frame behind what was read of it.
bool FrameReader::consume_large(std::size_t bytes, Round& round) {
  std::array<Word, wire::kEnvelopeWords> envelope{};
  if (round.rest_.size() < sizeof envelope) return false;
  std::memcpy(envelope.data(), round.rest_.data(), sizeof envelope);
  direct_header_ = wire::read_header(envelope);
  if ((direct_header_.flags & wire::kInlinePayloads) != 0 ||
      direct_header_.kind == wire::FrameKind::chunk) {
    throw BadMessage("a large frame must not have inline payloads or be a chunk");
  }
  large_frame_bytes_ = bytes;
  sizes_ = wire::place_of_sizes(envelope, bytes / sizeof(Word));
  direct_rest_ = {};
  if (bytes > limits_.frame_bytes) {
    drop_large_frame({}, false, round);
  } else {
    direct_ = Direct::frame;
    fill_large_frame(round);
  }
  return direct_ == Direct::none;
}

// Has the rest of a large frame dropped, of which `kept` has come. Throws BadMessage unless it is a
// call or a reply, whose caller can learn that it is lost.
void FrameReader::drop_large_frame(std::span<const std::byte> kept, bool no_memory, Round& round) {
  using wire::FrameKind;
  const FrameKind kind = direct_header_.kind;
  if (kind != FrameKind::call && kind != FrameKind::result && kind != FrameKind::error) {
    const std::string what = "a frame of " + std::to_string(large_frame_bytes_) + " bytes";
    if (no_memory) throw BadMessage("no memory for " + what);
    throw BadMessage(what + " is larger than the limit of " + std::to_string(limits_.frame_bytes) +
                     " (NodeOptions::limits.max_frame_bytes), and is neither a call nor a reply");
  }
  dropped_ = {.header = direct_header_, .bytes = large_frame_bytes_, .no_memory = no_memory};
  dropped_.payload_sizes.resize(kind == FrameKind::error ? 0 : sizes_.count);
  dropped_bytes_ = 0;
  note_sizes(kept);
  large_frame_ = {};
  drop(large_frame_bytes_ - dropped_bytes_, Direct::dropped_frame, round);
}

// Drops the next `bytes` bytes: those that were read, and the others as they come.
void FrameReader::drop(std::uint64_t bytes, Direct what, Round& round) {
  direct_ = what;
  direct_skip_ = bytes;
  const auto there = round.rest_.first(std::min<std::uint64_t>(bytes, round.rest_.size()));
  round.rest_ = round.rest_.subspan(there.size());
  skip(there, round);
}

void FrameReader::skip(std::span<const std::byte> bytes, Round& round) {
  if (direct_ == Direct::dropped_frame) note_sizes(bytes);
  direct_skip_ -= bytes.size();
  if (direct_skip_ > 0) return;
  if (std::exchange(direct_, Direct::none) != Direct::dropped_frame) return;
  const DroppedFrame dropped = std::exchange(dropped_, {});  // the sink may read on
  round.sink_.on_dropped_frame(dropped);
}

// Takes what these next bytes of a dropped frame have of the list of payload sizes.
void FrameReader::note_sizes(std::span<const std::byte> bytes) {
  const std::size_t list = sizes_.begin * sizeof(Word);
  const std::size_t end = list + dropped_.payload_sizes.size() * sizeof(Word);
  const std::size_t from = std::clamp(list, dropped_bytes_, dropped_bytes_ + bytes.size());
  const std::size_t to = std::clamp(end, from, dropped_bytes_ + bytes.size());
  if (to > from) {
    auto* const sizes = reinterpret_cast<std::byte*>(dropped_.payload_sizes.data());
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from - dropped_bytes_), to - from,
                sizes + (from - list));
  }
  dropped_bytes_ += bytes.size();
}

// Takes more of the large frame from the unread bytes. Its memory grows with what has come: a peer
// that only announces a frame costs little.
void FrameReader::fill_large_frame(Round& round) {
  std::size_t have = large_frame_.capacity() - direct_rest_.size();
  while (direct_rest_.empty() && have < large_frame_bytes_) {
    const std::size_t there = std::min(large_frame_bytes_ - have, round.rest_.size());
    try {
      large_frame_.grow(have, have + std::max<std::size_t>(there, 1), large_frame_bytes_);
    } catch (const std::bad_alloc&) {
      return drop_large_frame({large_frame_.data(), have}, true, round);
    }
    const std::span memory(large_frame_.data(), large_frame_.capacity());
    std::copy_n(round.rest_.begin(), there, memory.begin() + static_cast<std::ptrdiff_t>(have));
    round.rest_ = round.rest_.subspan(there);
    have += there;
    direct_rest_ = memory.subspan(have);
  }
  if (have == large_frame_bytes_) finish_direct(round);
}

void FrameReader::begin_chunk(const wire::FrameHeader& header, Round& round) {
  const std::span<std::byte> target = round.sink_.chunk_target(header);
  if (round.is_over()) return;
  if (target.empty()) {
    drop(wire::padded(header.value), Direct::dropped_chunk, round);
    return round.sink_.on_dropped_chunk();
  }
  direct_header_ = header;
  direct_ = Direct::chunk;
  const std::size_t there = std::min(target.size(), round.rest_.size());
  std::copy_n(round.rest_.begin(), there, target.begin());
  round.rest_ = round.rest_.subspan(there);
  direct_rest_ = target.subspan(there);
  direct_skip_ = wire::padded(header.value) - header.value;
  const std::size_t skipped = std::min<std::uint64_t>(direct_skip_, round.rest_.size());
  round.rest_ = round.rest_.subspan(skipped);
  direct_skip_ -= skipped;
  if (direct_rest_.empty() && direct_skip_ == 0) finish_direct(round);
}

void FrameReader::finish_direct(Round& round) {
  if (std::exchange(direct_, Direct::none) == Direct::chunk) {
    round.sink_.on_chunk(direct_header_);
    return;
  }
  round.large_frame_ = std::exchange(large_frame_, {});
  round.frame_ = std::span(round.large_frame_.data(), large_frame_bytes_);
  const wire::FrameView frame =
      wire::parse_frame({reinterpret_cast<const Word*>(round.large_frame_.data()),
                         large_frame_bytes_ / sizeof(Word)});
  deliver(frame, {}, round);
  round.frame_ = {};
  round.large_frame_ = {};
}

void FrameReader::deliver(const wire::FrameView& frame, std::span<const std::byte> payloads,
                          Round& round) {
  if (!open_) {
    const std::uint64_t bytes = frame.words.size_bytes() + payloads.size();
    check_before_hello(bytes);
    bytes_before_hello_ += bytes;
  }
  std::vector<Bytes> views;
  if ((frame.header.flags & wire::kInlinePayloads) != 0) {
    views.reserve(frame.payload_sizes.size());
    for (const std::uint64_t size : frame.payload_sizes) {
      views.emplace_back(nullptr, payloads.first(size));
      payloads = payloads.subspan(wire::padded(size));
    }
  }
  round.sink_.on_frame(frame, views);
}

// Checks that a peer that is not known yet may send so many bytes more.
void FrameReader::check_before_hello(std::uint64_t bytes) const {
  if (bytes <= limits_.before_hello_bytes - bytes_before_hello_) return;
  throw BadMessage("more than " + std::to_string(limits_.before_hello_bytes) +
                   " bytes arrived before a hello");
}

}  // namespace batchrpc
