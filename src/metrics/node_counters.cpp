#include "metrics/node_counters.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace batchrpc {

NodeCounters::NodeCounters(const Loop& loop)
    : stopwatch_(loop),
      unknown_(*this, stopwatch_, std::string(kUnknownName)),
      other_(*this, stopwatch_, std::string(kOtherName)) {}

NodeCounters::~NodeCounters() = default;

FunctionCounters& NodeCounters::function(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto at = functions_.find(name);
  if (at != functions_.end()) return *at->second;
  if (functions_.size() >= kMaxCountedNames) return other_;
  auto made = std::make_unique<FunctionCounters>(*this, stopwatch_, std::string(name));
  return *functions_.emplace(std::string(name), std::move(made)).first->second;
}

CallMetrics& NodeCounters::of(Calls& peer, std::string_view function) {
  auto& functions = peer.by_function;
  const auto calls = functions.find(function);
  if (calls != functions.end()) return calls->second;
  if (functions.size() >= kMaxCountedNames) return functions[std::string(kOtherName)];
  return functions.emplace(std::string(function), CallMetrics()).first->second;
}

// The caller must hold the lock.
NodeCounters::Calls& NodeCounters::past(std::string_view peer) {
  auto entry = past_.find(peer);
  if (entry == past_.end()) {
    if (past_.size() >= kMaxPastPeers) forget_some_peers();
    entry = past_.emplace(std::string(peer), Calls()).first;
  }
  entry->second.changed = ++changes_;
  return entry->second;
}

// Moves the counts of the quarter of the peers without a session that has been unchanged longest to
// the entry for other peers. The caller must hold the lock.
void NodeCounters::forget_some_peers() {
  std::set<std::string, std::less<>> kept{std::string(kOtherName), std::string(kUnknownName)};
  for (const auto& session : sessions_)
    kept.insert(session->peer());
  std::vector<ByPeer::iterator> without;
  for (auto peer = past_.begin(); peer != past_.end(); ++peer) {
    if (!kept.contains(peer->first)) without.push_back(peer);
  }
  std::sort(without.begin(), without.end(),
            [](const auto& a, const auto& b) { return a->second.changed < b->second.changed; });
  without.resize(without.size() - without.size() * 3 / 4);
  for (const ByPeer::iterator peer : without) {
    const auto node = past_.extract(peer);
    Calls& others = past_[std::string(kOtherName)];
    for (const auto& [function, calls] : node.mapped().by_function)
      of(others, function).add(calls);
  }
}

void NodeCounters::refused(std::string_view peer, std::string_view function, const Error& error,
                           TimePoint now, bool is_known) {
  {
    const std::lock_guard lock(mutex_);
    CallMetrics& calls = of(past(is_known ? peer : kUnknownName), function);
    ++calls.calls;
    ++calls.errors.counts[ErrorCounts::index_of(error.code())];
  }
  if (function == kLibraryName) return;  // not called by the program
  errors.add({.kind = ErrorRecord::Kind::call,
              .at = now,
              .code = error.code(),
              .function = std::string(function),
              .peer = std::string(peer),
              .text = error.what()});
}

void NodeCounters::enter(std::shared_ptr<const SessionCounts> session) {
  const std::lock_guard lock(mutex_);
  sessions_.push_back(std::move(session));
}

void NodeCounters::leave(const std::shared_ptr<SessionCounts>& session) {
  const std::lock_guard lock(mutex_);
  std::erase(sessions_, session);
  if (session->peer().empty()) return;
  session->for_each([&](const std::string& function, CallMetrics calls) {
    // The handler's end has already reported this to the caller that waited.
    const auto broken = ErrorCounts::index_of(ErrorCode::broken_promise);
    calls.errors.counts[broken] += std::exchange(calls.in_flight, 0);
    of(past(session->peer()), function).add(calls);
  });
}

std::uint64_t NodeCounters::calls_made() const {
  std::uint64_t made = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [peer, calls] : past_) {
    for (const auto& [function, metrics] : calls.by_function)
      made += metrics.calls + (function == kLibraryName ? 0 : metrics.notifications);
  }
  for (const auto& session : sessions_)
    made += session->calls_made();
  return made;
}

void NodeCounters::report(NodeMetrics& metrics) const {
  std::map<std::string, FunctionMetrics> functions;
  const auto entry_of = [&](const std::string& name) -> FunctionMetrics& {
    const auto [entry, is_new] = functions.try_emplace(name);
    if (is_new) entry->second.name = name;
    return entry->second;
  };
  ByPeer peers;
  std::vector<std::shared_ptr<const SessionCounts>> sessions;
  std::vector<const FunctionCounters*> exposed;
  {
    const std::lock_guard lock(mutex_);
    peers = past_;
    sessions = sessions_;
    for (const auto& [name, counters] : functions_)
      exposed.push_back(counters.get());
  }
  for (const auto& session : sessions) {
    const std::string peer = session->peer();
    if (peer.empty()) continue;
    session->for_each([&](const std::string& function, const CallMetrics& calls) {
      of(peers[peer], function).add(calls);
    });
  }
  for (const FunctionCounters* counters : exposed)
    entry_of(counters->name).answered = counters->snapshot();
  for (const FunctionCounters* counters : {&unknown_, &other_}) {
    CallMetrics answered = counters->snapshot();
    if (answered.calls > 0) entry_of(counters->name).answered.add(answered);
  }
  for (auto& [name, calls] : peers) {
    PeerMetrics& peer = metrics.peers.emplace_back();
    peer.name = name;
    for (auto& [function, made] : calls.by_function) {
      peer.made.add(made);
      entry_of(function).made.add(made);
      peer.functions.push_back({.function = function, .made = std::move(made)});
    }
  }
  for (auto& [name, function] : functions) {
    metrics.made.add(function.made);
    metrics.answered.add(function.answered);
    metrics.functions.push_back(std::move(function));
  }
  metrics.retries = retries.load(std::memory_order_relaxed);
}

}  // namespace batchrpc
