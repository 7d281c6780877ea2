#include "session/connection_log.hpp"

#include <utility>

namespace batchrpc {

void ConnectionLog::add(ConnectionEvent event) {
  const std::lock_guard lock(mutex_);
  std::vector<ConnectionEvent> events;
  if (events_) events = *events_;
  const bool repeats = event.kind == ConnectionEvent::Kind::failed && !events.empty() &&
                       events.back().kind == event.kind;
  if (repeats) {
    event.count += events.back().count;
    events.pop_back();
  }
  if (events.size() == kKept) events.erase(events.begin());
  events.push_back(std::move(event));
  events_ = std::make_shared<const std::vector<ConnectionEvent>>(std::move(events));
}

void ConnectionLog::end_silence() {
  const std::lock_guard lock(mutex_);
  if (!events_ || events_->empty() || events_->back().kind != ConnectionEvent::Kind::silent) return;
  events_ =
      std::make_shared<const std::vector<ConnectionEvent>>(events_->begin(), events_->end() - 1);
}

ConnectionLog::Events ConnectionLog::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

}  // namespace batchrpc
