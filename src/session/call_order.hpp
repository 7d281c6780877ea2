#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "batchrpc/transport/loop.hpp"
#include "session/payload_assembler.hpp"

namespace batchrpc {

/// The calls of one peer that wait for their turn on an object: those of one object start in the
/// order of their frames, also when the payloads of one come later. Knows the objects for which a
/// call waits, no others. Used by the thread that reads.
class CallOrder {
 public:
  /// As detail::ObjectId.
  using Object = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  using Call = PayloadAssembler::Whole;

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  /// How much waits, in bytes.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return waiting_bytes_; }
  [[nodiscard]] bool has(const Object& object) const { return lines_.contains(object); }

  /// A call that is there, behind those before it.
  void append(const Object& object, Call call);
  /// A place for the call `id`, which is still coming in.
  void reserve(const Object& object, std::uint64_t id);
  /// The call for which that place was.
  void fill(const Object& object, std::uint64_t id, Call call);
  /// The call whose turn it is, to be run now.
  [[nodiscard]] std::optional<Call> take(const Object& object);
  /// All calls that are there; none of them will run.
  [[nodiscard]] std::vector<Call> take_all();
  /// The call of that id, which is there and will not run; nothing, if it does not wait here.
  [[nodiscard]] std::optional<Call> remove(std::uint64_t id);
  /// The call for which that place was will never be there.
  void give_up(const Object& object, std::uint64_t id);
  /// Nor will any that is still coming in. Returns the objects whose calls may be
  /// taken now.
  [[nodiscard]] std::vector<Object> give_up();

 private:
  struct Place {
    std::uint64_t id;  // of a call that is coming in
    std::optional<Call> call;
  };

  std::map<Object, std::deque<Place>> lines_;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace batchrpc
