#pragma once

#include <cstdint>
#include <deque>
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
/// frames, even if the payloads of one come later. Only keys with a waiting call are stored. Used
/// by the thread that reads.
class CallOrder {
 public:
  using Key = detail::OrderingKey;
  using Call = PayloadAssembler::Whole;

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  /// The bytes of the calls that wait.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return waiting_bytes_; }
  [[nodiscard]] bool has(const Key& key) const { return lines_.contains(key); }

  /// Appends a call that is complete behind those before it.
  void append(const Key& key, Call call);
  /// Reserves a place for the call `id`, which is still coming in.
  void reserve(const Key& key, std::uint64_t id);
  /// Puts the call into the place that was reserved for it.
  void fill(const Key& key, std::uint64_t id, Call call);
  /// Removes and returns the call whose turn it is, to be run now.
  [[nodiscard]] std::optional<Call> take(const Key& key);
  /// Removes and returns all calls that are complete. None of them will run.
  [[nodiscard]] std::vector<Call> take_all();
  /// Removes and returns the complete call of that id, which will not run. Returns nothing if it
  /// does not wait here.
  [[nodiscard]] std::optional<Call> remove(std::uint64_t id);
  /// Drops the place of a call that will never be complete.
  void give_up(const Key& key, std::uint64_t id);
  /// Drops the places of all calls that are still coming in. Returns the keys whose calls may be
  /// taken now.
  [[nodiscard]] std::vector<Key> give_up();

 private:
  struct Place {
    std::uint64_t id;  // the id of a call that is coming in
    std::optional<Call> call;
  };

  std::map<Key, std::deque<Place>> lines_;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace batchrpc
