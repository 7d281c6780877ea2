#include "transport/inproc_switchboard.hpp"

#include <algorithm>

namespace batchrpc::detail {
namespace {

std::pair<std::string, std::string> link(std::string_view a, std::string_view b) {
  return {std::string(std::min(a, b)), std::string(std::max(a, b))};
}

void run_after(const std::weak_ptr<Loop>& weak, Duration delay, Task task) {
  const auto loop = weak.lock();
  if (!loop) return;
  if (delay == Duration::zero()) {
    loop->post(std::move(task));
  } else {
    loop->schedule(loop->now() + delay, std::move(task));
  }
}

}  // namespace

bool InprocSwitchboard::listen(const std::shared_ptr<InprocListening>& listening) {
  const std::lock_guard lock(mutex_);
  return listening_.emplace(listening->name, listening).second;
}

void InprocSwitchboard::unlisten(const std::shared_ptr<InprocListening>& listening) {
  listening->closed = true;
  const std::lock_guard lock(mutex_);
  const auto found = listening_.find(listening->name);
  if (found != listening_.end() && found->second == listening) listening_.erase(found);
}

void InprocSwitchboard::connect(const std::shared_ptr<InprocConnecting>& connecting,
                                TimePoint deadline) {
  const auto loop = connecting->loop.lock();
  if (!loop) return;
  const std::lock_guard lock(mutex_);
  connecting_.push_back(connecting);
  connecting->deadline = loop->schedule(deadline, [weak = weak_from_this(), connecting] {
    const auto self = weak.lock();
    if (!self) return;
    if (auto handler = self->finish(connecting)) {
      handler(nullptr, std::make_error_code(std::errc::timed_out));
    }
  });
  try_to_connect(connecting);
}

void InprocSwitchboard::give_up(const void* transport) {
  std::vector<Transport::ConnectHandler> given_up;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  std::erase_if(connecting_, [&](const auto& connecting) {
    if (connecting->transport != transport) return false;
    given_up.push_back(std::move(connecting->handler));
    return true;
  });
}

Transport::ConnectHandler InprocSwitchboard::finish(
    const std::shared_ptr<InprocConnecting>& connecting) {
  const std::lock_guard lock(mutex_);
  if (std::erase(connecting_, connecting) == 0) return nullptr;
  return std::move(connecting->handler);
}

bool InprocSwitchboard::is_cut(const std::string& a, const std::string& b) const {
  return isolated_.contains(a) || isolated_.contains(b) || cuts_.contains(link(a, b));
}

LinkOptions InprocSwitchboard::options(const std::string& a, const std::string& b) const {
  const auto found = links_.find(link(a, b));
  return found != links_.end() ? found->second : all_links_;
}

void InprocSwitchboard::try_to_connect(const std::shared_ptr<InprocConnecting>& connecting) {
  const auto found = listening_.find(connecting->name);
  const auto listening = found != listening_.end() ? found->second : nullptr;
  if (isolated_.contains(connecting->host)) return;
  if (listening && is_cut(connecting->host, listening->host)) return;

  connecting->answered = true;
  LinkOptions link_options = all_links_;
  std::unique_ptr<Stream> stream;  // none: refused, by whichever host is there
  if (listening) {
    link_options = options(connecting->host, listening->host);
    const auto connection = std::make_shared<InprocConnection>(
        link_options, random_(), std::array{connecting->loop, listening->loop},
        std::array{connecting->host, listening->host});
    if (connections_.size() >= forget_at_) forget_dead_connections();
    connections_.push_back(connection);
    stream = make_inproc_stream(connection, 0, "inproc://" + connecting->name);
    auto accepted = make_inproc_stream(connection, 1, "inproc host '" + connecting->host + "'");
    run_after(listening->loop, link_options.latency,
              [listening, accepted = std::move(accepted)]() mutable {
                if (!listening->closed) listening->handler(std::move(accepted));
              });
  }
  run_after(connecting->loop, 2 * link_options.latency,
            [self = shared_from_this(), connecting, stream = std::move(stream)]() mutable {
              auto handler = self->finish(connecting);
              if (!handler) return;
              if (const auto loop = connecting->loop.lock()) loop->cancel(connecting->deadline);
              const auto error =
                  stream ? std::error_code{} : std::make_error_code(std::errc::connection_refused);
              handler(std::move(stream), error);
            });
}

void InprocSwitchboard::forget_dead_connections() {
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  forget_at_ = 2 * connections_.size() + 64;
}

void InprocSwitchboard::apply_cuts() {
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (connection) connection->hold(is_cut(connection->host(0), connection->host(1)));
  }
  for (const auto& connecting : connecting_) {
    if (!connecting->answered) try_to_connect(connecting);
  }
}

void InprocSwitchboard::set_link(const LinkOptions& options) {
  const std::lock_guard lock(mutex_);
  all_links_ = options;
}

void InprocSwitchboard::set_link(std::string_view a, std::string_view b,
                                 const LinkOptions& options) {
  const std::lock_guard lock(mutex_);
  links_[link(a, b)] = options;
}

void InprocSwitchboard::set_cut(std::string_view a, std::string_view b, bool cut) {
  const std::lock_guard lock(mutex_);
  cut ? void(cuts_.insert(link(a, b))) : void(cuts_.erase(link(a, b)));
  apply_cuts();
}

void InprocSwitchboard::set_isolated(std::string_view host, bool isolated) {
  const std::lock_guard lock(mutex_);
  isolated ? void(isolated_.emplace(host)) : void(isolated_.erase(std::string(host)));
  apply_cuts();
}

void InprocSwitchboard::cut(std::string_view a, std::string_view b) {
  const std::lock_guard lock(mutex_);
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (!connection || link(connection->host(0), connection->host(1)) != link(a, b)) continue;
    connection->kill(0);
    connection->kill(1);
  }
}

void InprocSwitchboard::kill(std::string_view host) {
  const std::lock_guard lock(mutex_);
  for (auto at = listening_.begin(); at != listening_.end();) {
    const bool killed = at->second->host == host;
    if (killed) at->second->closed = true;
    at = killed ? listening_.erase(at) : std::next(at);
  }
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (!connection) continue;
    for (const int side : {0, 1}) {
      if (connection->host(side) == host) connection->kill(side);
    }
  }
}

std::size_t InprocSwitchboard::connections() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                [](const auto& weak) { return !weak.expired(); }));
}

}  // namespace batchrpc::detail
