#include "batchrpc/profile/profiler.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "base/replace_file.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/profile/chrome_trace.hpp"
#include "node/node_core.hpp"
#include "profile/gathering.hpp"
#include "recording/call_store.hpp"

namespace batchrpc {
namespace {

// Returns the stream if the path names one that the program also writes to, which must not be
// replaced. Null otherwise.
std::FILE* stream_of(const std::string& path) {
  if (path == "/dev/stdout") return stdout;
  return path == "/dev/stderr" ? stderr : nullptr;
}

// Writes to a temporary file, which replaces the wanted one when complete. If the path is not a
// regular file, writes to it directly.
void write_file(const std::string& wanted, const std::string& text) {
  namespace fs = std::filesystem;
  if (std::FILE* const stream = stream_of(wanted)) {
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
    if (written && std::fflush(stream) == 0) return;
    throw InvalidArgument("'" + wanted + "' cannot be written: " + std::strerror(errno));
  }
  std::error_code unknown;
  const fs::path target =
      fs::is_symlink(wanted, unknown) ? fs::canonical(wanted, unknown) : fs::path();
  const std::string path = target.empty() ? wanted : target.string();
  const fs::file_status there = fs::status(path, unknown);
  const bool replaces = !fs::exists(there) || fs::is_regular_file(there);
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument("'" + path + "' cannot be written: " + why +
                          "; choose a file in an existing folder on a disk with free space");
  };
  if (replaces) {
    const bool exists = fs::exists(there);
    const mode_t mode = exists ? static_cast<mode_t>(there.permissions()) : 0666;
    if (const std::error_code error = replace_file(path, text, mode)) refuse(error.message());
    if (exists) fs::permissions(path, there.permissions(), unknown);
    return;
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) refuse(std::strerror(errno));
}

}  // namespace

struct Profiler::Parts {
  Parts(const Node& node, const ProfilerOptions& options)
      : core(detail::NodeAccess::core(node)),
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

  const std::weak_ptr<NodeCore> core;
  const std::size_t max_events;
  const std::shared_ptr<CallStore> store;
  Recording own;                 // without its calls
  Duration wall_clock_offset{};  // of the node's clock

  std::mutex mutex;                                       // guards the members below
  std::map<std::string, profile::GatheredPeer> gathered;  // by name
};

Profiler::Profiler(const Node& node, const ProfilerOptions& options)
    : parts_(std::make_unique<Parts>(node, options)) {
  if (options.sample == 0) {
    throw InvalidArgument(
        "ProfilerOptions::sample is 0, but must be at least 1 (1 records every call, n one call in "
        "n)");
  }
  detail::NodeAccess::core(node)->tracer().show(parts_->store, options.sample);
  detail::NodeAccess::core(node)->tracer().add(parts_->store, options.sample, options.answered);
}

Profiler::~Profiler() { stop(); }

void Profiler::stop() {
  if (const auto core = parts_->core.lock()) core->tracer().remove(*parts_->store);
}

std::vector<std::string> Profiler::gather(Duration timeout) {
  if (timeout <= Duration::zero()) throw InvalidArgument("gather(): the timeout must be positive");
  const auto core = parts_->core.lock();
  if (!core) throw ShutDown("gather(): the profiler's node has ended");
  if (const std::exception_ptr refusal = core->refusal()) std::rethrow_exception(refusal);
  const TimePoint deadline = core->loop()->now() + timeout;
  std::vector<std::string> missing;
  std::vector<std::pair<PeerInfo, Future<profile::Told>>> asked;  // asks all at once
  for (PeerInfo& peer : core->peers().snapshot()) {
    if (peer.state == PeerState::lost) continue;
    auto told = profile::ask_for_recorded(core, peer.name, parts_->max_events, deadline);
    asked.emplace_back(std::move(peer), std::move(told));
  }
  for (auto& [peer, future] : asked) {
    try {
      profile::Told told = std::move(future).get();
      const std::lock_guard lock(parts_->mutex);
      const auto [known, is_new] = parts_->gathered.try_emplace(peer.name, parts_->max_events);
      known->second.take(peer.incarnation, std::move(told));
    } catch (const TimedOut&) {
      missing.push_back(peer.name +
                        ": it did not send all of its records within the timeout of gather()");
    } catch (const std::exception& error) {
      missing.push_back(peer.name + ": " + error.what());
    }
  }
  return missing;
}

Recording Profiler::recording() const {
  Recording all = parts_->own;
  // A handler's call may be inside the call that this one answers, and also by itself.
  Recording own;
  own.calls = parts_->store->copy();
  merge(all, std::move(own));
  all.left_out = parts_->store->left_out();
  std::vector<Recording> gathered;
  {
    const std::lock_guard lock(parts_->mutex);
    for (const auto& [peer, theirs] : parts_->gathered)
      gathered.push_back(theirs.recording());
  }
  for (Recording& theirs : gathered)
    merge(all, std::move(theirs));
  return all;
}

ProfileTable Profiler::key_averages() const { return ProfileTable(recording()); }

void Profiler::export_chrome_trace(const std::string& path) const {
  write_file(path, chrome_trace(recording()));
}

void Profiler::export_otlp(const std::string& path, const OtlpOptions& options) const {
  write_file(path, otlp(recording(), parts_->wall_clock_offset, options));
}

}  // namespace batchrpc
