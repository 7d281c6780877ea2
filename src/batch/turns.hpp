#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

namespace batchrpc {
struct PeerIdentity;
}

namespace batchrpc::detail {

/// Items of several callers; the callers take turns, one item at a time. Not thread-safe.
template <class T>
class Turns {
 public:
  void add(const PeerIdentity* caller, T thing) {
    auto line = std::find_if(lines_.begin(), lines_.end(),
                             [caller](const Line& other) { return other.caller == caller; });
    if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{caller, {}});
    line->things.push_back(std::move(thing));
  }

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  /// The next item; there must be one.
  [[nodiscard]] const T& next() const { return lines_.front().things.front(); }
  T take_next() {
    Line line = std::move(lines_.front());
    lines_.pop_front();
    T thing = std::move(line.things.front());
    line.things.pop_front();
    if (!line.things.empty()) lines_.push_back(std::move(line));
    return thing;
  }

  /// Takes the first item, of those that are next of their callers, for which `which` is true. Asks
  /// it in the order of the turns.
  template <class Which>
  std::optional<T> take_next_if(Which&& which) {
    const auto line = std::find_if(lines_.begin(), lines_.end(),
                                   [&](const Line& of) { return which(of.things.front()); });
    if (line == lines_.end()) return std::nullopt;
    std::rotate(lines_.begin(), line, std::next(line));
    return take_next();
  }

  template <class Which>
  void remove_if(const Which& which) {
    for (Line& line : lines_)
      std::erase_if(line.things, which);
    std::erase_if(lines_, [](const Line& line) { return line.things.empty(); });
  }
  template <class Use>
  void for_each(const Use& use) const {
    for (const Line& line : lines_) {
      for (const T& thing : line.things)
        use(thing);
    }
  }

 private:
  struct Line {
    const PeerIdentity* caller;
    std::deque<T> things;  // never empty
  };

  std::deque<Line> lines_;  // in the order of their turns
};

}  // namespace batchrpc::detail
