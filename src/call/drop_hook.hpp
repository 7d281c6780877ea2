#pragma once

#include <memory>
#include <utility>

#include "batchrpc/call/call_state.hpp"

namespace batchrpc {

/// Removes a waiting call from its queue when it is cancelled: calls `place->drop(key)`, without a
/// lock.
template <class Place, class Key>
class DropHook final : public detail::CancelHook {
 public:
  DropHook(std::weak_ptr<Place> place, Key key) : place_(std::move(place)), key_(std::move(key)) {}
  ~DropHook() override { detach(); }

 private:
  [[nodiscard]] Task task() noexcept override {
    return [place = place_, key = key_] {
      if (const auto alive = place.lock()) alive->drop(key);
    };
  }

  const std::weak_ptr<Place> place_;
  const Key key_;
};

}  // namespace batchrpc
