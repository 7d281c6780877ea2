#include "tls/tls_security.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "tls/tls_error.hpp"

namespace batchrpc::tls {
namespace {

constexpr std::ptrdiff_t kMostAccepted = 64;
constexpr Duration kHandshakeTime = std::chrono::seconds(5);
constexpr Duration kOwnTime = std::chrono::seconds(1);  // no other takes its place
constexpr Duration kLookPause = std::chrono::seconds(1);

}  // namespace

TlsSecurity::TlsSecurity(Parts parts) : parts_(std::move(parts)) {
  if (parts_.can_change) credentials_ = parts_.make_credentials();
}

TlsSecurity::~TlsSecurity() {
  for (const auto& [number, entry] : under_way_) {
    parts_.loop->cancel(entry.timer);
    entry.handshake->drop();
  }
}

std::string TlsSecurity::refusal(bool beyond_this_host) const {
  if (!beyond_this_host || parts_.reaches_other_hosts) return {};
  return "TCP beyond this host needs a token or certificates, since anyone on the network can "
         "connect. Give all nodes of the group one of these: the same "
         "NodeOptions::security.token_file (make it by: batchrpc-keys token FILE); certificates "
         "(NodeOptions::security.certificate, key and authority); or, on a network that you trust "
         "entirely, NodeOptions::security.insecure = true";
}

std::optional<std::chrono::seconds> TlsSecurity::certificate_time_left() const {
  const std::lock_guard lock(mutex_);
  return credentials_ ? credentials_->time_left() : std::nullopt;
}

std::shared_ptr<Credentials> TlsSecurity::credentials() {
  const std::lock_guard lock(mutex_);
  if (!credentials_) credentials_ = parts_.make_credentials();
  return credentials_;
}

void TlsSecurity::connect(std::unique_ptr<Stream> stream, TimePoint deadline,
                          ConnectHandler handler) {
  begin(std::move(stream), false, deadline, std::move(handler));
}

void TlsSecurity::accept(std::unique_ptr<Stream> stream, AcceptHandler handler) {
  if (!make_room()) {
    report("refused " + stream->description() + ": " + std::to_string(kMostAccepted) +
           " TLS handshakes are under way");
    return;
  }
  begin(std::move(stream), true, parts_.loop->now() + kHandshakeTime,
        [handler = std::move(handler)](std::unique_ptr<Stream> secured, std::error_code /*error*/) {
          if (secured) handler(std::move(secured));
        });
}

// Returns whether there is room for one more accepted handshake.
bool TlsSecurity::make_room() {
  std::shared_ptr<Handshake> oldest;
  {
    const std::lock_guard lock(mutex_);
    const auto is_accepted = [](const auto& entry) { return entry.second.accepted; };
    if (std::count_if(under_way_.begin(), under_way_.end(), is_accepted) < kMostAccepted)
      return true;
    const auto first = std::find_if(under_way_.begin(), under_way_.end(), is_accepted);
    if (parts_.loop->now() - first->second.since <= kOwnTime) return false;
    oldest = first->second.handshake;
    parts_.loop->cancel(first->second.timer);
    under_way_.erase(first);
  }
  oldest->drop();
  report("dropped " + oldest->description() +
         ": newer connections took its place before its TLS handshake was over");
  return true;
}

void TlsSecurity::begin(std::unique_ptr<Stream> stream, bool accepted, TimePoint deadline,
                        ConnectHandler handler) {
  std::shared_ptr<Credentials> own;
  try {
    own = credentials();
  } catch (const std::exception& error) {
    report("no TLS with " + stream->description() + ": " + error.what());
    parts_.loop->post([handler = std::move(handler)]() mutable {
      handler(nullptr, make_error_code(TlsError::no_credentials));
    });
    return;
  }
  std::shared_ptr<Handshake> handshake;
  {
    const std::lock_guard lock(mutex_);
    const Number number = next_++;
    handshake =
        std::make_shared<Handshake>(parts_.loop, std::move(own), std::move(stream), accepted,
                                    [weak = weak_from_this(), number, handler = std::move(handler)](
                                        Handshake::Outcome outcome) mutable {
                                      if (const auto self = weak.lock())
                                        self->finished(number, std::move(outcome), handler);
                                    });
    const TimerId timer = parts_.loop->schedule(deadline, [weak = std::weak_ptr(handshake)] {
      if (const auto late = weak.lock()) late->give_up(std::make_error_code(std::errc::timed_out));
    });
    under_way_.emplace(number, UnderWay{.handshake = handshake,
                                        .since = parts_.loop->now(),
                                        .accepted = accepted,
                                        .timer = timer});
  }
  watch();
  threads_->post([handshake, threads = std::weak_ptr(threads_)] { handshake->run(threads); });
}

std::shared_ptr<Handshake> TlsSecurity::take(Number number) {
  const std::lock_guard lock(mutex_);
  const auto at = under_way_.find(number);
  if (at == under_way_.end()) return nullptr;
  parts_.loop->cancel(at->second.timer);
  auto handshake = std::move(at->second.handshake);
  under_way_.erase(at);
  return handshake;
}

// On the loop.
void TlsSecurity::finished(Number number, Handshake::Outcome outcome, ConnectHandler& handler) {
  const auto handshake = take(number);
  if (!handshake) return;
  if (!outcome.below) {
    report("no TLS with " + handshake->description() + ": " + outcome.reason);
    return handler(nullptr, outcome.error);
  }
  auto stream = std::make_unique<TlsStream>(parts_.loop, std::move(outcome.below),
                                            std::move(outcome.records), outcome.peer.proof);
  if (parts_.can_change) {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [](const Open& each) { return !each.ending->is_alive(); });
    open_.push_back({.ending = stream->ending(),
                     .peer = std::move(outcome.peer),
                     .description = stream->description()});
  }
  handler(std::move(stream), {});
}

void TlsSecurity::report(const std::string& line) {
  failures_.write(parts_.log, LogLevel::warning, parts_.loop->now(), line);
}

// Looks at the files every second, from the first handshake on.
void TlsSecurity::watch() {
  if (!parts_.can_change) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(watched_, true)) return;
  }
  parts_.loop->schedule(parts_.loop->now() + kLookPause, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->threads_->post([weak] {
      if (const auto here = weak.lock()) here->look();
    });
  });
}

void TlsSecurity::look() {
  try {
    const auto current = credentials();
    if (const auto news = current->look()) {
      parts_.log.write(news->is_bad ? LogLevel::warning : LogLevel::info, news->line);
    }
    check_open(*current);
  } catch (const std::bad_alloc&) {  // the next look makes up for it
  }
  {
    const std::lock_guard lock(mutex_);
    watched_ = false;
  }
  watch();
}

// Ends the streams of peers that are not trusted any longer.
void TlsSecurity::check_open(const Credentials& current) {
  std::vector<Open> open;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [](const Open& each) { return !each.ending->is_alive(); });
    open = open_;
  }
  for (const Open& each : open) {
    const std::optional<TlsError> reason = current.check_again(each.peer);
    if (!reason || each.ending->reason()) continue;
    parts_.log.warning("ends the connection with " + each.description + ": " +
                       make_error_code(*reason).message() + " (" + each.peer.proof->identity + ")");
    each.ending->end(*reason);
  }
}

}  // namespace batchrpc::tls
