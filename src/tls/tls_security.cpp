#include "tls/tls_security.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/tcp_address.hpp"
#include "tls/tls_error.hpp"

namespace batchrpc::tls {
namespace {

constexpr std::size_t kMostAccepted = 64;
constexpr std::size_t kMostOfOneHost = 32;  // other than this one
constexpr Duration kHandshakeTime = std::chrono::seconds(5);
constexpr Duration kLookPause = std::chrono::seconds(1);

constexpr const char* kThisHost = "this host";

bool is_loopback(const Address& address) {
  return address.scheme() == "tcp" && TcpAddress::of(address).is_loopback();
}

// The host that an accepted stream comes from.
std::string host_of(const Stream& stream) {
  try {
    const TcpAddress peer = TcpAddress::parse(stream.description());
    if (!peer.is_loopback()) return peer.host;
  } catch (const InvalidArgument&) {  // a stream of another kind
  }
  return kThisHost;
}

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
  if (!parts_.refusal.empty()) return parts_.refusal;
  if (!beyond_this_host || parts_.reaches_other_hosts) return {};
  return "TCP beyond this host needs a token or certificates, since anyone on the network can "
         "connect. Give all nodes of the group one of these: the same "
         "NodeOptions::security.token_file or BATCHRPC_TOKEN_FILE in "
         "the environment (make it by: batchrpc-keys token FILE); certificates "
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
  // Only a connection to this host comes from a loopback address.
  if (!parts_.reaches_other_hosts && !is_loopback(stream->local_address())) {
    const std::error_code error = TlsError::beyond_this_host;
    report(stream->description(), error, error.message(), false);
    return handler(nullptr, error);
  }
  begin(std::move(stream), {}, deadline, std::move(handler));
}

void TlsSecurity::accept(std::unique_ptr<Stream> stream, AcceptHandler handler) {
  std::string host = host_of(*stream);
  make_room(host);
  begin(std::move(stream), std::move(host), parts_.loop->now() + kHandshakeTime,
        [handler = std::move(handler)](std::unique_ptr<Stream> secured, std::error_code /*error*/) {
          if (secured) handler(std::move(secured));
        });
}

// Ends a handshake if there are too many, with that host or at all. A random one: half a handshake
// of a stranger lasts long and is hit often, one of an honest peer takes a few round trips.
void TlsSecurity::make_room(const std::string& host) {
  std::shared_ptr<Handshake> dropped;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::map<Number, UnderWay>::iterator> accepted;
    std::vector<std::map<Number, UnderWay>::iterator> of_host;
    for (auto at = under_way_.begin(); at != under_way_.end(); ++at) {
      if (!at->second.accepted_from.empty()) accepted.push_back(at);
      if (at->second.accepted_from == host) of_host.push_back(at);
    }
    const bool one_too_many = host != kThisHost && of_host.size() >= kMostOfOneHost;
    if (!one_too_many && accepted.size() < kMostAccepted) return;
    const auto& among = one_too_many ? of_host : accepted;
    const auto chosen = among[random_() % among.size()];
    dropped = chosen->second.handshake;
    parts_.loop->cancel(chosen->second.timer);
    under_way_.erase(chosen);
  }
  dropped->drop();
  report(dropped->description(), {}, "newer connections took its place before it was over", true);
}

void TlsSecurity::begin(std::unique_ptr<Stream> stream, std::string accepted_from,
                        TimePoint deadline, ConnectHandler handler) {
  const bool accepted = !accepted_from.empty();
  std::shared_ptr<Credentials> own;
  try {
    own = credentials();
  } catch (const std::exception& error) {
    report(stream->description(), TlsError::no_credentials, error.what(), accepted);
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
                                        .accepted_from = std::move(accepted_from),
                                        .timer = timer});
  }
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

// Runs on the loop.
void TlsSecurity::finished(Number number, Handshake::Outcome outcome, ConnectHandler& handler) {
  const auto handshake = take(number);
  if (!handshake) return;
  if (!outcome.below) {
    report(handshake->description(), outcome.error, outcome.reason, handshake->is_server());
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

// Each reason has a limit of its own, so that one peer does not silence what is said of others.
void TlsSecurity::report(const std::string& peer, std::error_code error, const std::string& why,
                         bool accepted) {
  constexpr std::size_t kMostReasons = 64;
  LogLimit* limit = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const bool is_full = limits_.size() >= kMostReasons;
    limit = &limits_[is_full ? std::pair(false, 0) : std::pair(accepted, error.value())];
  }
  limit->write(parts_.log, LogLevel::warning, parts_.loop->now(),
               "TLS handshake with " + peer + " failed: " + why);
}

// Looks at the files every second.
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
    const auto news = current->look();
    if (news) parts_.log.write(news->is_bad ? LogLevel::warning : LogLevel::info, news->line);
    check_open(*current, news && !news->is_bad);
  } catch (const std::bad_alloc&) {  // the next look makes up for it
  }
  {
    const std::lock_guard lock(mutex_);
    watched_ = false;
  }
  watch();
}

// Ends the streams of peers that are not trusted any longer.
void TlsSecurity::check_open(const Credentials& current, bool anew) {
  std::vector<Open> open;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [](const Open& each) { return !each.ending->is_alive(); });
    open = open_;
    for (Open& each : open_)
      each.is_new = false;
  }
  for (const Open& each : open) {
    const std::error_code reason = current.check_again(each.peer, anew || each.is_new);
    if (!reason || each.ending->reason()) continue;
    parts_.log.warning("ends the connection with " + each.description + " (" +
                       each.peer.proof->identity + "): " + reason.message());
    each.ending->end(reason);
  }
}

}  // namespace batchrpc::tls
