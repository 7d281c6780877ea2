#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batchrpc/call/function_kind.hpp"
#include "batchrpc/transport/loop.hpp"
#include "session/payload_assembler.hpp"

namespace batchrpc {

/// The calls of one peer that wait for their turn. Calls of one key start in the order of their
/// frames, even if the payloads of one come later. Only keys with a waiting call are stored. A call
/// is found by its id however many wait, so a peer that cancels many costs little. Used by the
/// thread that reads.
class CallOrder {
 public:
  using Key = detail::OrderingKey;
  using Call = PayloadAssembler::Whole;

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  /// The bytes of the calls that wait.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return waiting_bytes_; }
  [[nodiscard]] bool has(const Key& key) const { return lines_.contains(key); }

  /// Appends the call `id`, which is complete, behind those before it.
  void append(const Key& key, std::uint64_t id, Call call);
  /// Reserves a place for the call `id`, which is still coming in.
  void reserve(const Key& key, std::uint64_t id);
  /// Puts the call into the place that was reserved for it.
  void fill(std::uint64_t id, Call call);
  /// Removes and returns the call whose turn it is, to be run now.
  [[nodiscard]] std::optional<Call> take(const Key& key);
  /// Removes and returns all calls that are complete. None of them will run.
  [[nodiscard]] std::vector<Call> take_all();
  /// Removes and returns the complete call of that id, which will not run. Returns nothing if it
  /// does not wait here.
  [[nodiscard]] std::optional<Call> remove(std::uint64_t id);
  /// Drops the place of a call that will never be complete.
  void give_up(std::uint64_t id);
  /// Drops the first place of a key if its call is still coming in. Returns whether it was.
  bool give_up_first(const Key& key) noexcept;
  /// Returns a key of which a call may wait; nothing if none waits.
  [[nodiscard]] std::optional<Key> any_key() const {
    if (lines_.empty()) return std::nullopt;
    return lines_.begin()->first;
  }

 private:
  struct Place;
  using Line = std::list<Place>;
  using Lines = std::map<Key, Line>;
  struct Where {
    Line* line = nullptr;
    Line::iterator place{};
  };
  // By the call's id, and whether it is complete. Complete calls of one id are in their order.
  using Index = std::multimap<std::pair<std::uint64_t, bool>, Where>;
  struct Place {
    std::optional<Call> call;  // empty: the call is coming in
    Index::iterator index{};
  };

  void add(Line& line, std::uint64_t id, std::optional<Call> call);
  Line::iterator erase(Line& line, Line::iterator place);

  Lines lines_;
  Index index_;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace batchrpc
