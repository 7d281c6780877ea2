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

/// The calls of one peer that wait for their turn: those of one key start in the order of their
/// frames, also when the payloads of one come later. Knows the keys for which a call waits, no
/// others. Used by the thread that reads.
class CallOrder {
 public:
  using Key = detail::OrderingKey;
  using Call = PayloadAssembler::Whole;

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  /// How much waits, in bytes.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return waiting_bytes_; }
  [[nodiscard]] bool has(const Key& key) const { return lines_.contains(key); }

  /// A call that is there, behind those before it.
  void append(const Key& key, Call call);
  /// A place for the call `id`, which is still coming in.
  void reserve(const Key& key, std::uint64_t id);
  /// The call for which that place was.
  void fill(const Key& key, std::uint64_t id, Call call);
  /// The call whose turn it is, to be run now.
  [[nodiscard]] std::optional<Call> take(const Key& key);
  /// All calls that are there; none of them will run.
  [[nodiscard]] std::vector<Call> take_all();
  /// The call of that id, which is there and will not run; nothing, if it does not wait here.
  [[nodiscard]] std::optional<Call> remove(std::uint64_t id);
  /// The call for which that place was will never be there.
  void give_up(const Key& key, std::uint64_t id);
  /// Nor will any that is still coming in. Returns the keys whose calls may be taken now.
  [[nodiscard]] std::vector<Key> give_up();

 private:
  struct Place {
    std::uint64_t id;  // of a call that is coming in
    std::optional<Call> call;
  };

  std::map<Key, std::deque<Place>> lines_;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace batchrpc
