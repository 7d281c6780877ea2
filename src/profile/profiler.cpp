#include "batchrpc/profile/profiler.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "base/system_ids.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/node/caller.hpp"
#include "batchrpc/profile/chrome_trace.hpp"
#include "batchrpc/profile/otlp.hpp"
#include "node/call_store.hpp"
#include "node/node_core.hpp"
#include "node/recorded_calls.hpp"

namespace batchrpc {
namespace {

using recorded_calls::Page;

// Beside the file, which it replaces when it is whole; what is no file is written to as it is.
void write_file(const std::string& wanted, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::path target =
      fs::is_symlink(wanted, unknown) ? fs::canonical(wanted, unknown) : fs::path();
  const std::string path = target.empty() ? wanted : target.string();
  const fs::file_status there = fs::status(path, unknown);
  const bool replaces = !fs::exists(there) || fs::is_regular_file(there);
  const std::string beside = replaces ? path + ".tmp." + std::to_string(process_number()) : path;
  const auto refuse = [&] {
    const std::string why = std::strerror(errno);
    if (replaces) (void)std::remove(beside.c_str());
    throw InvalidArgument("'" + path + "' cannot be written: " + why);
  };
  errno = 0;
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  if (!file) refuse();
  file << text;
  file.close();
  if (!file) refuse();
  if (!replaces) return;
  if (fs::exists(there)) fs::permissions(beside, there.permissions(), unknown);
  if (std::rename(beside.c_str(), path.c_str()) != 0) refuse();
}

// What the way there and back tells of the clocks.
CallRecord clock_sample(const NodeCore& core, const std::string& peer, TimePoint sent,
                        const Page& page, TimePoint replied) {
  CallRecord sample;
  sample.caller.node = core.name();
  sample.callee.node = peer;
  sample.called = sample.encoded = sample.sent = sent;
  sample.received = TimePoint(Duration(page.received));
  sample.begun = sample.received;
  sample.finished = TimePoint(Duration(page.finished));
  sample.replied = sample.ended = replied;
  return sample;
}

}  // namespace

struct Profiler::Parts {
  Parts(const Node& node, const ProfilerOptions& options)
      : core(node.core()),
        max_events(options.max_events),
        store(std::make_shared<CallStore>(options.max_events, options.operators)) {
    own.node = node.name();
    own.rank = node.rank();
    own.sampled = options.sample;
    if (const auto alive = core.lock()) {
      const auto wall = std::chrono::system_clock::now();  // NOLINT(layers): of spans alone
      wall_clock_offset = wall.time_since_epoch() - alive->loop()->now().time_since_epoch();
    }
  }

  Future<Page> ask(NodeCore& node, const std::string& peer, std::uint64_t from_store,
                   std::uint64_t from_call, Duration timeout) const {
    const auto submit = [&](const detail::FunctionKey& key, detail::OutgoingOptions&& how,
                            Encoder& encoder, detail::ReplyHandler&& handler) {
      node.submit(peer, key, std::move(how), encoder, std::move(handler));
    };
    detail::OutgoingOptions how;
    how.timeout = timeout;
    return detail::send_call<Page, std::uint64_t, std::uint64_t>(
        submit,
        detail::function_key(recorded_calls::kRecorded,
                             signature<Page, std::uint64_t, std::uint64_t>()),
        std::move(how), from_store, from_call);
  }

  // All that a peer has, as far as there is room.
  Future<Recording> gather_from(std::shared_ptr<NodeCore> node, std::string peer,
                                TimePoint deadline) const {
    Recording all;
    std::size_t room = max_events;
    std::uint64_t from_store = 0;
    std::uint64_t from_call = 0;
    for (bool more = true; more;) {
      const TimePoint sent = node->loop()->now();
      if (sent >= deadline) throw TimedOut("it took too long to tell all", false);
      auto asked = ask(*node, peer, from_store, from_call, deadline - sent);
      Page page = co_await std::move(asked);
      all.clock_samples.push_back(clock_sample(*node, peer, sent, page, node->loop()->now()));
      all.left_out += page.left_out;
      all.sampled = std::max(all.sampled, page.sampled);
      more = page.more && room > 0;
      for (wire::CallBody& body : page.calls) {
        CallRecord call = wire::record_of(std::move(body));
        const std::size_t events = detail::events_of(call);
        if (events > room) {
          all.left_out += events;
          more = false;
          continue;
        }
        room -= events;
        all.calls.push_back(std::move(call));
      }
      from_store = page.next_store;
      from_call = page.next_call;
    }
    co_return all;
  }

  const std::weak_ptr<NodeCore> core;
  const std::size_t max_events;
  const std::shared_ptr<CallStore> store;
  Recording own;                 // without its calls
  Duration wall_clock_offset{};  // of the node's clock

  std::mutex mutex;                           // guards what follows
  std::map<std::string, Recording> gathered;  // by peer
};

Profiler::Profiler(const Node& node, const ProfilerOptions& options)
    : parts_(std::make_unique<Parts>(node, options)) {
  if (options.sample == 0) {
    throw InvalidArgument("ProfilerOptions::sample is 0: one in so many calls, so 1 is all");
  }
  node.core()->tracer().show(parts_->store, options.sample);
  node.core()->tracer().add(parts_->store, options.sample, options.answered);
}

Profiler::~Profiler() { stop(); }

void Profiler::stop() {
  if (const auto core = parts_->core.lock()) core->tracer().remove(*parts_->store);
}

std::vector<std::string> Profiler::gather(Duration timeout) {
  if (timeout <= Duration::zero())
    throw InvalidArgument("gather(): the time-out is not above zero");
  const auto core = parts_->core.lock();
  if (!core) throw ShutDown("gather(): the profiler's node has ended");
  const TimePoint deadline = core->loop()->now() + timeout;
  std::vector<std::string> missing;
  std::vector<std::pair<std::string, Future<Recording>>> asked;  // all at once
  for (const PeerInfo& peer : core->peers().snapshot()) {
    if (peer.state == PeerState::lost) continue;
    asked.emplace_back(peer.name, parts_->gather_from(core, peer.name, deadline));
  }
  for (auto& [peer, future] : asked) {
    try {
      Recording theirs = std::move(future).get();
      const std::lock_guard lock(parts_->mutex);
      Recording& known = parts_->gathered[peer];
      known.clock_samples.clear();  // clocks drift: the latest count
      known.left_out = 0;
      merge(known, std::move(theirs));
    } catch (const std::exception& error) {
      missing.push_back(peer + ": " + error.what());
    }
  }
  return missing;
}

Recording Profiler::recording() const {
  Recording all = parts_->own;
  // A call of a handler may be within the one that this answers, and by itself.
  Recording own;
  own.calls = parts_->store->copy();
  merge(all, std::move(own));
  all.left_out = parts_->store->left_out();
  std::map<std::string, Recording> gathered;
  {
    const std::lock_guard lock(parts_->mutex);
    gathered = parts_->gathered;
  }
  for (auto& [peer, theirs] : gathered)
    merge(all, std::move(theirs));
  return all;
}

ProfileTable Profiler::key_averages() const { return ProfileTable(recording()); }

void Profiler::export_chrome_trace(const std::string& path) const {
  write_file(path, chrome_trace(recording()));
}

void Profiler::export_otlp(const std::string& path) const {
  write_file(path, otlp(recording(), parts_->wall_clock_offset));
}

}  // namespace batchrpc
