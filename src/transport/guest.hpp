#pragma once

#include <memory>
#include <utility>

#include "transport/presence.hpp"
#include "transport/turn.hpp"

namespace asio {
class io_context;
}

namespace batchrpc::detail {

/// A loop on an embedder's io_context, among other loops there: all run their tasks in the turns of
/// that context.
class Guest : public std::enable_shared_from_this<Guest> {
 public:
  explicit Guest(asio::io_context& io);

  /// Runs `task` in its turn, as one of the loop's.
  template <class F>
  void run(F task) {
    turn_->run([self = shared_from_this(), task = std::move(task)]() mutable {
      const Presence::Scope scope(self->presence_);
      task();
    });
  }

  [[nodiscard]] Turn& turn() noexcept { return *turn_; }
  /// Who runs tasks of the loop, or waits in one.
  [[nodiscard]] Presence& presence() noexcept { return presence_; }

 private:
  const std::shared_ptr<Turn> turn_;
  Presence presence_;
};

}  // namespace batchrpc::detail
