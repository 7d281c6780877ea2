#include "node/node_core.hpp"

#include <algorithm>
#include <asio/io_context.hpp>
#include <random>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/composite_transport.hpp"
#include "batchrpc/transport/inproc.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/socket_transport.hpp"
#include "dispatch/admission_queue.hpp"
#include "dispatch/context_workers.hpp"
#include "dispatch/exclusive_calls.hpp"
#include "dispatch/loop_tasks.hpp"
#include "dispatch/parked_calls.hpp"
#include "dispatch/worker_pool.hpp"
#include "node/group.hpp"
#include "node/options_check.hpp"
#include "node/retries.hpp"
#include "session/flush_scope.hpp"
#include "session/set_aside.hpp"

namespace batchrpc {
namespace {

// What a thread of the program, and a task of the loop, does while it waits.
class LoopWait final : public WaitContext {
 public:
  LoopWait(std::shared_ptr<Loop> loop, std::string node, std::shared_ptr<const ForkMark> fork_mark)
      : loop_(std::move(loop)), node_(std::move(node)), fork_mark_(std::move(fork_mark)) {}
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    fork_mark_->refuse_forked_copy(node_);
    FlushScope::flush_current();
    const SetAside aside;
    loop_->wait(waiter, deadline);
  }
  [[nodiscard]] TimePoint now() const noexcept override { return loop_->now(); }

 private:
  const std::shared_ptr<Loop> loop_;
  const std::string node_;
  const std::shared_ptr<const ForkMark> fork_mark_;
};

std::uint64_t new_incarnation(std::uint64_t seed) {
  if (seed != 0) return std::mt19937_64(seed)() | 1;
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

NodeCore::NodeCore(NodeOptions options)
    : options_(completed(std::move(options))),
      log_(options_.log_level, options_.log_sink, options_.name),
      self_{.name = options_.name,
            .rank = options_.rank,
            .incarnation = new_incarnation(options_.seed)},
      host_(host_identity()),
      rank_(options_.rank),
      tracer_(self_.incarnation, options_.operators) {
  auto composite = std::make_shared<CompositeTransport>();
  if (options_.loop) {
    loop_ = options_.loop;
  } else {
    const auto loop = options_.io_context != nullptr
                          ? SocketLoop::embed(*options_.io_context)
                          : SocketLoop::start({.busy_poll = options_.busy_poll});
    own_loop_ = options_.io_context == nullptr;
    loop_ = loop;
    composite->add(
        {Address::Scheme::tcp, Address::Scheme::unix_path, Address::Scheme::unix_abstract},
        std::make_shared<SocketTransport>(loop));
  }
  counters_.emplace(*loop_);
  made_at_ = loop_->now();
  context_ = std::make_shared<LoopWait>(loop_, options_.name, fork_mark_);
  // Calls to oneself go through a network of one where no other is given.
  const auto network = options_.network ? options_.network : InprocNetwork::make();
  composite->add({Address::Scheme::inproc}, network->transport(loop_, options_.name));
  transport_ = std::move(composite);
  loop_tasks_ = std::make_shared<LoopTasks>(loop_, context_);
  parked_ = std::make_shared<ParkedCalls>(loop_, loop_tasks_, functions_);
  if (own_loop_) {
    workers_ = std::make_shared<WorkerPool>(options_.num_worker_threads, loop_);
  } else if (options_.io_context != nullptr) {
    workers_ = std::make_shared<ContextWorkers>(*options_.io_context, context_);
  }
  if (AdmissionQueue::limits_anything(options_.call_limits)) {
    queue_ = std::make_shared<AdmissionQueue>(options_.call_limits, loop_, workers(), log_, name());
  }
  exclusive_ = std::make_shared<ExclusiveCalls>(loop_tasks_, workers(), queue_);
  retries_ = std::make_shared<Retries>(loop_, context_, ~self_.incarnation);
  peers_ = std::make_unique<PeerTable>(
      PeerTable::Environment{.loop = loop_,
                             .context = context_,
                             .transport = transport_.get(),
                             .host = [this] { return shared_from_this(); },
                             .changed = [this](const PeerChange& change) { changed(change); }},
      options_, self_);
  group_ = std::make_shared<Group>(*this);
}

NodeCore::~NodeCore() = default;

Future<std::shared_ptr<NodeCore>> NodeCore::start(const std::shared_ptr<NodeCore>& core) {
  WaitContext::suggest(core->context_);
  try {
    core->open_status_page();
    core->group_->start();
    core->expose_recorded_calls();
    const bool is_root = core->options_.rank == 0;
    const std::string own = core->listen(
        Address::parse("inproc://" + core->name() + "-" + std::to_string(core->self_.incarnation)));
    core->peers_->add({.name = core->name(),
                       .rank = core->rank(),
                       .incarnation = core->self_.incarnation,
                       .host = core->host_,
                       .addresses = {}},
                      {own});
    if (is_root) core->listen_for_peers(std::nullopt);
    core->schedule_tick();
    Future<void> ready = is_root ? core->group_->gather() : core->group_->join();
    return std::move(ready).then([core](Result<void> result) {
      if (!result) {
        const std::exception_ptr error = result.error();
        core->shutdown(Duration::zero());
        std::rethrow_exception(error);
      }
      core->parked_->expect_functions_until(
          after(core->loop_->now(), core->options_.expose_within));
      return core;
    });
  } catch (...) {
    core->shutdown(Duration::zero());
    throw;
  }
}

void NodeCore::abandon_start() {
  shutdown(Duration::zero());
  group_->give_up();
}

// --- calls

void NodeCore::set_rank(int rank) {
  rank_.store(rank, std::memory_order_relaxed);
  peers_->set_own_rank(rank);
}

wire::Hello NodeCore::own_hello() const {
  return {.rank = rank(),
          .incarnation = self_.incarnation,
          .session = 0,
          .received = 0,
          .name = options_.name,
          .job = options_.job};
}

std::exception_ptr NodeCore::refusal() const {
  if (!stopping_.load(std::memory_order_relaxed)) return nullptr;
  return std::make_exception_ptr(ShutDown("node " + options_.name + " is shutting down"));
}

std::shared_ptr<detail::ExposedFunction> NodeCore::resolve(std::string_view name,
                                                           std::string_view signature) const {
  return functions_.resolve(name, signature, options_.name);
}

void NodeCore::run_on_worker(Task task) { workers()->post(std::move(task)); }

void NodeCore::run_exclusively(std::shared_ptr<detail::ExposedFunction> function,
                               detail::IncomingCall call) {
  exclusive_->add(shared_from_this(), std::move(function), std::move(call));
}

bool NodeCore::park(const std::string& function, detail::IncomingCall& call, RunAgain again) {
  return parked_->park(function, call, std::move(again));
}

void NodeCore::expose(std::shared_ptr<detail::ExposedFunction> function) {
  fork_mark_->refuse_forked_copy(options_.name);
  if (stopping_) throw ShutDown("node " + options_.name + " is shut down; make a new one");
  const std::string name = function->name;
  function->counters = &counters_->function(counted_name(name));
  functions_.add(std::move(function));
  parked_->exposed(name);
}

void NodeCore::admit(Session& session, const wire::Hello& hello) { peers_->admit(session, hello); }

std::shared_ptr<Session> NodeCore::find_session(const Session& half_open,
                                                const wire::Hello& hello) {
  return peers_->find_session(half_open, hello);
}

void NodeCore::session_detached(const std::shared_ptr<Session>& session, const std::string& why) {
  peers_->session_detached(session, why);
}

void NodeCore::session_resumed(Session& session) { peers_->session_resumed(session); }

void NodeCore::session_closed(const std::shared_ptr<Session>& session, const std::string& why) {
  peers_->session_closed(session, why);
}

// --- changes

void NodeCore::changed(const PeerChange& change) {
  if (change.peer.name == name() || stopping_) return;
  const bool lost = change.kind == PeerChange::Kind::lost;
  if (!lost) end_waits(change.peer.name);
  if (!lost) log_.info(change.peer.name + " has joined");
  if (lost) {
    counters_->errors.add({.kind = ErrorRecord::Kind::connection,
                           .at = loop_->now(),
                           .code = ErrorCode::peer_lost,
                           .peer = change.peer.name,
                           .text = change.reason});
  }
  call_handlers(change);
  if (lost) {
    group_->peer_lost(change.peer, change.reason);
  } else {
    group_->peer_joined(change.peer);
  }
}

void NodeCore::call_handlers(const PeerChange& change) const {
  std::vector<std::shared_ptr<ChangeHandler>> handlers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, handler] : handlers_)
      handlers.push_back(handler);
  }
  for (const auto& handler : handlers) {
    try {
      (*handler)(change);
    } catch (...) {
      log_.error("a handler of membership changes threw: " + describe(std::current_exception()));
    }
  }
}

std::uint64_t NodeCore::on_change(ChangeHandler handler) {
  const std::lock_guard lock(mutex_);
  handlers_.emplace_back(next_handler_, std::make_shared<ChangeHandler>(std::move(handler)));
  return next_handler_++;
}

void NodeCore::on_end_report(EndReport report) {
  const std::lock_guard lock(mutex_);
  end_reports_.push_back(std::move(report));
}

void NodeCore::forget_handler(std::uint64_t number) {
  std::shared_ptr<ChangeHandler> forgotten;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(handlers_.begin(), handlers_.end(),
                               [&](const auto& entry) { return entry.first == number; });
  if (at == handlers_.end()) return;
  forgotten = std::move(at->second);
  handlers_.erase(at);
}

void NodeCore::schedule_tick() {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  tick_ = loop_->schedule(loop_->now() + options_.ping_after, [this, weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const FlushScope scope(context_);
      peers_->tick();
    }
    seek_awaited();
    group_->tick();
    call_handlers({.kind = PeerChange::Kind::ticked, .peer = {}, .reason = {}});
    detail::trim_blocks_now_and_then();
    payload_memory_->tick();
    schedule_tick();
  });
}

}  // namespace batchrpc
