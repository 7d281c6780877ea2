#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "fuzz/conversation.hpp"
#include "wire/frame.hpp"

// Changes of inputs that are made of frames, which leave frames: half of all. The others are
// libFuzzer's own.

extern "C" {
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
[[gnu::visibility("default")]] std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                                                   std::size_t size,
                                                                   std::size_t max_size,
                                                                   unsigned int seed);
}

namespace batchrpc::fuzz {
namespace {

using Buffer = std::vector<std::byte>;

class Mutation {
 public:
  explicit Mutation(unsigned seed) : random_(seed) {}

  std::optional<Buffer> of(Buffer all) {
    const auto frames = frames_of(std::span<const std::byte>(all).subspan(kControlBytes));
    if (frames.empty()) return std::nullopt;
    const FramePlace frame = frames[any(frames.size())];
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(kControlBytes + frame.at);
    const auto end = begin + static_cast<std::ptrdiff_t>(frame.bytes);
    switch (any(6)) {
      case 0: {  // again, in another place
        const Buffer copy(begin, end);
        const auto to = kControlBytes + frames[any(frames.size())].at;
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(to), copy.begin(), copy.end());
        break;
      }
      case 1:
        all.erase(begin, end);
        break;
      case 2:  // the header: kind, flags, number, id, value
        change_word(&*begin, 2 + any(5));
        break;
      case 3: {
        const Word kind = any(14) << 16;
        Word word = load(&*begin, 5);
        word = (word & ~Word{0xffff0000}) | kind;
        store(&*begin, 5, word);
        break;
      }
      default:
        for (std::size_t changes = 1 + any(3); changes > 0; --changes)
          change_word(&*begin, 1 + any(frame.bytes / sizeof(Word) - 1));
    }
    return all;
  }
  bool is_ours() { return any(2) == 0; }

 private:
  std::size_t any(std::size_t count) { return random_() % count; }
  static Word load(const std::byte* frame, std::size_t word) {
    Word value = 0;
    std::memcpy(&value, frame + word * sizeof(Word), sizeof value);
    return value;
  }
  static void store(std::byte* frame, std::size_t word, Word value) {
    std::memcpy(frame + word * sizeof(Word), &value, sizeof value);
  }
  void change_word(std::byte* frame, std::size_t at) {
    Word word = load(frame, at);
    switch (any(5)) {
      case 0:
        word = Word{random_()} << 32 | random_();
        break;
      case 1:
        word += any(5) - 2;
        break;
      case 2:
        word = any(12);
        break;
      case 3:
        word = ~Word{0} - any(10);
        break;
      default:
        word ^= Word{1} << any(64);
    }
    store(frame, at, word);
  }

  std::minstd_rand random_;
};

}  // namespace
}  // namespace batchrpc::fuzz

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed) {
  using namespace batchrpc::fuzz;
  Mutation mutation(seed);
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  if (size > kControlBytes && mutation.is_ours()) {
    const auto changed = mutation.of({bytes, bytes + size});
    if (changed && changed->size() <= max_size) {
      std::copy(changed->begin(), changed->end(), reinterpret_cast<std::byte*>(data));
      return changed->size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
