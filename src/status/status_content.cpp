#include "status/status_content.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/json_writer.hpp"
#include "base/system_ids.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/base/version.hpp"
#include "batchrpc/metrics/node_metrics.hpp"
#include "batchrpc/node/node.hpp"
#include "status/listen_address.hpp"
#include "status/page.hpp"

namespace batchrpc::status {
namespace {

constexpr std::chrono::milliseconds kKeptFor(100);
constexpr std::uint64_t kMostSeconds = 60;
constexpr std::uint64_t kMostSample = 1'000'000;
constexpr std::string_view kNodeEnded = "the node has ended";

HttpReply refusal(int status, std::string_view why) {
  return {.status = status, .body = std::string(why) + "\n"};
}

// Browsers ask for a password at the second challenge, and ignore the first.
HttpReply token_wanted() {
  HttpReply reply = refusal(401,
                            "this page needs its token: send the header 'Authorization: Bearer "
                            "TOKEN', or in a browser give the token as the password of any user");
  reply.headers = {{"WWW-Authenticate", R"(Bearer realm="batchrpc")"},
                   {"WWW-Authenticate", R"(Basic realm="batchrpc", charset="UTF-8")"}};
  return reply;
}

// Adds the members that to_json(metrics) does not have.
std::string json_of(const Node& node, const NodeMetrics& metrics, bool recording) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("batchrpc", version());
  json.member("process", process_number());
  json.member("address", node.address());
  json.member("world_size", node.world_size());
  json.member("recording", recording);
  json.key("peers");
  json.begin_array();
  for (const PeerInfo& peer : node.peers()) {
    json.begin_object();
    json.member("name", peer.name);
    json.member("incarnation", std::to_string(peer.incarnation));
    json.member("identity", peer.identity);
    json.member("last_error", peer.last_error);
    json.key("addresses");
    json.begin_array();
    for (const std::string& address : peer.addresses)
      json.value(address);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.key("metrics");
  json.raw(to_json(metrics));
  json.end_object();
  return text;
}

std::string nonce() {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::random_device device;
  std::string text(32, '0');
  for (std::size_t i = 0; i < text.size(); i += 8) {
    unsigned bits = device();
    for (std::size_t digit = 0; digit < 8; ++digit, bits >>= 4U)
      text[i + digit] = kHexDigits[bits & 15U];
  }
  return text;
}

// Whether the origin is a page of the same host, by HTTP or HTTPS: a proxy in front may add TLS.
bool is_origin(std::string_view origin, std::string_view host) {
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && origin.substr(scheme + 3) == host;
}

// Returns the number, if it is from 1 to `most`.
std::optional<std::uint64_t> number_in(std::string_view text, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && at == text.data() + text.size();
  if (!whole || number < 1 || number > most) return std::nullopt;
  return number;
}

// Returns the characters of a node's name that any file name may have.
std::string trace_name(std::string node) {
  std::erase_if(node, [](char letter) {
    return !(letter >= 'a' && letter <= 'z') && !(letter >= 'A' && letter <= 'Z') &&
           !(letter >= '0' && letter <= '9') && letter != '-' && letter != '_' && letter != '.';
  });
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> time{};
  const std::size_t length = std::strftime(time.data(), time.size(), "%Y%m%dT%H%M%SZ", &utc);
  return "batchrpc-" + node + "-" + std::string(time.data(), length) + ".trace.json";
}

HttpReply page() {
  const std::string once = nonce();
  return {
      .type = "text/html; charset=utf-8",
      .body = page_with_nonce(once),
      .headers = {{"Content-Security-Policy",
                   "default-src 'none'; script-src 'nonce-" + once + "'; style-src 'nonce-" + once +
                       "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action "
                       "'none'; frame-ancestors 'none'"}}};
}

}  // namespace

HttpReply StatusContent::answer(const HttpRequest& request) {
  if (request.path == "/healthz") return health();  // for everyone
  try {
    return answer_own(request);
  } catch (const ShutDown& error) {
    return refusal(503, error.what());
  }
}

HttpReply StatusContent::health() const {
  if (node_.expired()) return refusal(503, kNodeEnded);
  return {.body = "ok\n"};
}

HttpReply StatusContent::answer_own(const HttpRequest& request) {
  if (!loopback_.empty() && !is_own_host(request.host, loopback_)) {
    return refusal(
        403, request.host.empty()
                 ? "this page is only for localhost: the request has no Host header, such as "
                   "'localhost'"
                 : "this page is only for localhost: the request's Host header names another host");
  }
  if (!access_.allows(request.authorization)) return token_wanted();
  const bool from_elsewhere = (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
                               request.fetch_site != "none") ||
                              (!request.origin.empty() && !is_origin(request.origin, request.host));
  if (from_elsewhere && request.path != "/") {
    return refusal(403, "requests from other sites are refused");
  }
  if (request.path == "/") return page();
  if (request.path != "/status.json" && request.path != "/metrics" && request.path != "/trace") {
    return refusal(
        404, "not found; this server has /, /status.json, /metrics, /healthz and /trace?seconds=n");
  }
  if (request.path == "/trace") return trace(request);
  // Released last, without a lock: this may be the node's last reference.
  const std::shared_ptr<NodeCore> node = node_.lock();
  if (!node) return refusal(503, kNodeEnded);
  const auto shown = snapshot(node);
  if (request.path == "/metrics") {
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = shown->prometheus};
  }
  return {.type = "application/json", .body = shown->json};
}

std::shared_ptr<const StatusContent::Snapshot> StatusContent::snapshot(
    const std::shared_ptr<NodeCore>& node) {
  const bool recording = recorder_.is_recording();
  const std::lock_guard lock(mutex_);
  const Clock::time_point time = now();
  if (snapshot_ && time < snapshot_->at + kKeptFor) return snapshot_;
  const auto made = std::make_shared<Snapshot>();
  const auto handle = detail::NodeAccess::handle(node);
  NodeMetrics metrics = handle->metrics();
  made->prometheus = to_prometheus(metrics);
  for (PeerMetrics& peer : metrics.peers)
    peer.functions.clear();  // the largest part; /metrics has it
  made->json = json_of(*handle, metrics, recording);
  made->at = now();
  snapshot_ = made;
  return made;
}

HttpReply StatusContent::trace(const HttpRequest& request) {
  const auto seconds = number_in(request.seconds, kMostSeconds);
  if (!seconds) {
    return refusal(400, "use /trace?seconds=n, with n from 1 to " + std::to_string(kMostSeconds));
  }
  const bool known =
      request.operators.empty() || request.operators == "0" || request.operators == "1";
  const auto sample = number_in(request.sample.empty() ? "1" : request.sample, kMostSample);
  if (!known || !sample) {
    return refusal(400, "operators is 0 or 1, and sample=n records one call in n, up to " +
                            std::to_string(kMostSample));
  }
  std::string name;
  if (const std::shared_ptr<NodeCore> node = node_.lock())
    name = detail::NodeAccess::handle(node)->name();
  TraceRecorder::Trace trace =
      recorder_.record(node_, std::chrono::seconds(*seconds),
                       {.sample = *sample, .operators = request.operators != "0"}, request.is_gone);
  switch (trace.outcome) {
    case TraceRecorder::Outcome::busy:
      return refusal(409, "another trace is being recorded; try again when it has finished");
    case TraceRecorder::Outcome::stopped:
      return refusal(503, "the status page has ended");
    case TraceRecorder::Outcome::node_ended:
      return refusal(503, kNodeEnded);
    case TraceRecorder::Outcome::not_wanted:
      return refusal(400, "the client has closed the connection, or its sending half");
    case TraceRecorder::Outcome::recorded:
      break;
  }
  return {.type = "application/json",
          .body = std::move(trace.json),
          .headers = {{"Content-Disposition",
                       "attachment; filename=\"" + trace_name(std::move(name)) + "\""}}};
}

}  // namespace batchrpc::status
