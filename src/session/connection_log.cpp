#include "session/connection_log.hpp"

#include <utility>

namespace batchrpc {

void ConnectionLog::add(ConnectionEvent event) {
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
  if (!events_ || events_->empty() || events_->back().kind != ConnectionEvent::Kind::silent) return;
  events_ =
      std::make_shared<const std::vector<ConnectionEvent>>(events_->begin(), events_->end() - 1);
}

}  // namespace batchrpc
