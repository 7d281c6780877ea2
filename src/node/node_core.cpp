#include "node/node_core.hpp"

#include <algorithm>
#include <asio/io_context.hpp>
#include <random>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "dispatch/call_dispatcher.hpp"
#include "dispatch/context_workers.hpp"
#include "dispatch/loop_tasks.hpp"
#include "dispatch/worker_pool.hpp"
#include "node/group.hpp"
#include "node/options_check.hpp"
#include "node/retries.hpp"
#include "rref/object_kinds.hpp"
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
  for (const detail::FunctionKind& kind : detail::object_kinds())
    functions_.add_kind(kind);
  if (options_.loop) {
    loop_ = options_.loop;
  } else if (options_.io_context != nullptr) {
    loop_ = SocketLoop::embed(*options_.io_context);
  } else {
    loop_ = SocketLoop::start({.busy_poll = options_.busy_poll});
    own_loop_ = true;
  }
  transports_ = std::make_unique<TransportSet>(
      options_.transports,
      TransportContext{.loop = loop_, .node = options_.name, .incarnation = self_.incarnation});
  check_addresses(options_, *transports_);
  listening_ = std::make_unique<Listening>(options_, *transports_);
  counters_.emplace(*loop_);
  made_at_ = loop_->now();
  context_ = std::make_shared<LoopWait>(loop_, options_.name, fork_mark_);
  loop_tasks_ = std::make_shared<LoopTasks>(loop_, context_);
  if (own_loop_) {
    workers_ = std::make_shared<WorkerPool>(options_.num_worker_threads, loop_);
  } else if (options_.io_context != nullptr) {
    workers_ = std::make_shared<ContextWorkers>(*options_.io_context, context_);
  }
  calls_ = std::make_unique<CallDispatcher>(
      CallDispatcher::Environment{.node = name(),
                                  .functions = functions_,
                                  .loop = loop_,
                                  .loop_tasks = loop_tasks_,
                                  .workers = workers(),
                                  .limits = options_.call_limits,
                                  .log = log_,
                                  .log_limits = log_limits_,
                                  .counters = *counters_,
                                  .refusal = [this] { return refusal(); }});
  session_parts_.emplace(SessionParts{.options = options_,
                                      .log = log_,
                                      .log_limits = log_limits_,
                                      .tracer = tracer_,
                                      .calls = *calls_,
                                      .counters = &*counters_,
                                      .payload_memory = payload_memory_});
  retries_ = std::make_shared<Retries>(loop_, context_, ~self_.incarnation);
  peers_ = std::make_unique<PeerTable>(
      PeerTable::Environment{.loop = loop_,
                             .context = context_,
                             .transports = transports_.get(),
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
    const std::string own = core->listening_->begin([weak = core->weak_from_this()](auto stream) {
      if (const auto self = weak.lock()) self->peers_->accept(std::move(stream));
    });
    core->peers_->add({.name = core->name(),
                       .rank = core->rank(),
                       .incarnation = core->self_.incarnation,
                       .host = core->host_,
                       .addresses = {}},
                      {own});
    if (is_root) core->listening_->listen_for_peers(std::nullopt);
    core->schedule_tick();
    Future<void> ready = is_root ? core->group_->gather() : core->group_->join();
    return std::move(ready).then([core](Result<void> result) {
      if (!result) {
        const std::exception_ptr error = result.error();
        core->shutdown(Duration::zero());
        std::rethrow_exception(error);
      }
      core->calls_->expect_functions_until(after(core->loop_->now(), core->options_.expose_within));
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

Member NodeCore::self_member() const {
  return {.name = options_.name,
          .rank = rank(),
          .incarnation = self_.incarnation,
          .host = host_,
          .addresses = listening_->advertised()};
}

bool NodeCore::is_on_this_host(const Member& member) const {
  return member.host == host_ && !host_.empty();
}

std::vector<std::string> NodeCore::addresses_to_use(const Member& member) const {
  return transports_->usable(member.addresses, is_on_this_host(member));
}

std::string NodeCore::better_address(const Member& member, const std::string& used) const {
  const auto addresses = addresses_to_use(member);
  if (addresses.empty()) return {};
  const auto priority = [&](const std::string& text) {
    return transports_->priority(Address::parse(text), is_on_this_host(member));
  };
  const auto now = priority(used);
  // Without a priority it is a detour, such as a tunnel: whoever goes there means to.
  return now && *priority(addresses.front()) > *now ? addresses.front() : "";
}

void NodeCore::add_member(const Member& member) {
  if (member.name != name()) peers_->add(member, addresses_to_use(member));
}

std::exception_ptr NodeCore::refusal() const {
  if (!stopping_.load(std::memory_order_relaxed)) return nullptr;
  return std::make_exception_ptr(ShutDown("node " + options_.name + " is shutting down"));
}

void NodeCore::run_on_worker(Task task) { workers()->post(std::move(task)); }

void NodeCore::expose(std::shared_ptr<detail::ExposedFunction> function) {
  fork_mark_->refuse_forked_copy(options_.name);
  if (stopping_) throw ShutDown("node " + options_.name + " is shut down; make a new one");
  const std::string name = function->name;
  function->counters = &counters_->function(counted_name(name));
  functions_.add(std::move(function));
  calls_->exposed(name);
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

std::shared_ptr<void> NodeCore::extension_of(std::type_index type,
                                             const std::function<std::shared_ptr<void>()>& make) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<void>& extension = extensions_[type];
  if (!extension) extension = make();
  return extension;
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
