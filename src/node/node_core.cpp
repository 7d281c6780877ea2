#include "node/node_core.hpp"

#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/error.hpp"
#include "dispatch/call_dispatcher.hpp"
#include "node/group.hpp"
#include "node/options_check.hpp"
#include "node/retries.hpp"
#include "rref/object_kinds.hpp"
#include "session/flush_scope.hpp"
#include "session/payload_memory.hpp"

namespace batchrpc {

NodeCore::NodeCore(NodeOptions options)
    : options_(completed(std::move(options))),
      log_(options_.logging.level, options_.logging.sink, options_.name),
      identity_(options_),
      threads_(options_),
      statistics_(*loop()),
      addresses_(options_, identity_, loop(), log_),
      tracer_(incarnation(), options_.profiling.operators),
      calls_(std::make_unique<CallDispatcher>(
          CallDispatcher::Environment{.node = name(),
                                      .functions = functions_,
                                      .loop = loop(),
                                      .loop_tasks = loop_tasks(),
                                      .workers = workers(),
                                      .limits = options_.limits.calls,
                                      .log = log_,
                                      .log_limits = log_limits_,
                                      .counters = statistics_.counters(),
                                      .refusal = [this] { return refusal(); }})),
      session_parts_{.options = options_,
                     .log = log_,
                     .log_limits = log_limits_,
                     .tracer = tracer_,
                     .calls = *calls_,
                     .counters = &statistics_.counters(),
                     .payload_memory = std::make_shared<PayloadMemory>()},
      retries_(std::make_shared<Retries>(loop(), threads_.context(), ~incarnation())),
      peers_(std::make_unique<PeerTable>(
          PeerTable::Environment{
              .loop = loop(),
              .context = threads_.context(),
              .transports = &addresses_.transports(),
              .host = [this] { return shared_from_this(); },
              .secret_for =
                  [this](std::string_view peer, std::uint64_t incarnation) {
                    return identity_.secret_for(peer, incarnation);
                  },
              .changed = [this](const PeerChange& change) { changed(change); },
              .refused =
                  [this](const std::string& holder, TimePoint heard_at, const std::string& why) {
                    return group_->refused(holder, heard_at, why);
                  }},
          options_, identity_.as_peer())),
      group_(std::make_shared<Group>(*this)),
      waits_(name(), loop(), *peers_),
      handlers_(log_),
      tick_(loop(), options_.liveness.ping_after),
      denied_look_(loop(), std::chrono::seconds(1)) {
  set_call_timeout(options_.call_timeout);
  for (const detail::FunctionKind& kind : detail::object_kinds())
    functions_.add_kind(kind);
}

NodeCore::~NodeCore() = default;

Future<std::shared_ptr<NodeCore>> NodeCore::start(const std::shared_ptr<NodeCore>& core) {
  WaitContext::suggest(core->threads_.context());
  try {
    core->open_status_page();
    core->group_->start();
    core->expose_recorded_calls();
    Listening& listening = core->addresses_.listening();
    const bool is_root = core->options_.rank == 0;
    const std::string own = listening.begin([weak = core->weak_from_this()](auto stream) {
      if (const auto self = weak.lock()) self->peers_->accept(std::move(stream));
    });
    Member itself = core->addresses_.self();
    itself.addresses.clear();  // It calls itself by `own` alone.
    core->peers_->add(itself, {own});
    if (is_root) listening.listen_for_peers(std::nullopt);
    core->tick_.start([node = core.get()] { node->tick(); }, core);
    if (!core->options_.security.denied.empty()) {
      core->denied_look_.start([node = core.get()] { node->peers_->look_at_denied(); }, core);
    }
    Future<void> ready = is_root ? core->group_->gather() : core->group_->join();
    return std::move(ready).then([core](const Result<void>& result) {
      if (!result) {
        core->shutdown(Duration::zero());
        std::rethrow_exception(result.error());
      }
      core->calls_->expect_functions_until(
          after(core->loop()->now(), core->options_.expose_within));
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

void NodeCore::open_status_page() {
  if (options_.status == nullptr) return;
  auto page = options_.status->open(shared_from_this());
  log_.info("the status page of " + name() + " is at " + page->address());
  extensions_.set_status_page(std::move(page));
}

// Does what is due once a ping interval.
void NodeCore::tick() {
  {
    const FlushScope scope(threads_.context());
    peers_->tick();
  }
  waits_.seek();
  group_->tick();
  handlers_.call({.kind = PeerChange::Kind::ticked, .peer = {}, .reason = {}});
  detail::trim_blocks_now_and_then();
  payload_memory()->tick();
}

// --- calls

void NodeCore::set_rank(int rank) {
  identity_.set_rank(rank);
  peers_->set_own_rank(rank);
}

void NodeCore::add_member(const Member& member) {
  if (member.name != name()) peers_->add(member, addresses_.usable(member));
}

std::exception_ptr NodeCore::refusal() const {
  if (!stopping_.load(std::memory_order_relaxed)) return nullptr;
  return std::make_exception_ptr(ShutDown("node " + options_.name + " is shutting down"));
}

void NodeCore::run_on_worker(Task task) { workers()->post(std::move(task)); }

void NodeCore::expose(std::shared_ptr<detail::ExposedFunction> function) {
  threads_.refuse_forked_copy();
  if (stopping_) throw ShutDown("node " + options_.name + " is shut down; make a new one");
  const std::string name = function->name;
  function->counters = &statistics_.counters().function(counted_name(name));
  functions_.add(std::move(function));
  calls_->exposed(name);
}

void NodeCore::expect_no_more_functions() {
  threads_.refuse_forked_copy();
  calls_->expect_functions_until(loop()->now());
}

void NodeCore::address(wire::Hello& hello, std::string_view peer) const {
  peers_->address(hello, peer);
}

bool NodeCore::admit(Session& session, const wire::Hello& hello) {
  return peers_->admit(session, hello);
}

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
  if (lost) {
    statistics_.counters().errors.add({.kind = ErrorRecord::Kind::connection,
                                       .at = loop()->now(),
                                       .code = ErrorCode::peer_lost,
                                       .peer = change.peer.name,
                                       .text = change.reason});
  } else {
    waits_.end(change.peer.name);
    log_.info(change.peer.name + " has joined");
  }
  handlers_.call(change);
  if (lost) {
    group_->peer_lost(change.peer, change.reason);
  } else {
    group_->peer_joined(change.peer);
  }
}

std::uint64_t NodeCore::on_change(ChangeHandler handler) {
  return handlers_.add(std::move(handler));
}

void NodeCore::forget_handler(std::uint64_t number) { handlers_.remove(number); }

Future<PeerInfo> NodeCore::wait_for_peer(std::string peer, Duration timeout) {
  threads_.refuse_forked_copy();
  WaitContext::suggest(threads_.context());
  if (peer != name()) {
    return waits_.wait(std::move(peer), timeout == Duration::zero() ? call_timeout() : timeout,
                       weak_from_this());
  }
  if (stopping_) {
    return make_failed_future<PeerInfo>(std::make_exception_ptr(
        ShutDown("node " + options_.name + " is shut down; make a new one")));
  }
  return make_ready_future(PeerInfo{.name = name(),
                                    .rank = rank(),
                                    .incarnation = incarnation(),
                                    .state = PeerState::connected,
                                    .addresses = addresses_.listening().advertised()});
}

GroupEnd& NodeCore::group_end() noexcept { return group_->end(); }

// --- what layers above add

std::shared_ptr<void> NodeCore::extension_of(std::type_index type,
                                             const std::function<std::shared_ptr<void>()>& make) {
  return extensions_.get(type, make);
}

void NodeCore::on_end_report(EndReport report) { extensions_.add_end_report(std::move(report)); }

void NodeCore::on_metrics(MetricsSource source) { statistics_.add_source(std::move(source)); }

NodeMetrics NodeCore::metrics() const {
  threads_.refuse_forked_copy();
  NodeMetrics metrics;
  metrics.name = name();
  metrics.rank = rank();
  metrics.incarnation = incarnation();
  metrics.certificate_time_left = addresses_.certificate_time_left();
  metrics.parked = calls_->parked();
  metrics.workers = threads_.own_workers();
  if (const auto queue = calls_->queue_metrics()) metrics.queue = *queue;
  const PayloadMemory& memory = *session_parts_.payload_memory;
  metrics.payload_bytes_in_use = memory.used_bytes();
  metrics.payload_bytes_kept = memory.kept_bytes();
  statistics_.report(metrics, *peers_);
  return metrics;
}

}  // namespace batchrpc
