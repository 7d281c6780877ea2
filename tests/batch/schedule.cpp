#include "batch/schedule.hpp"

#include <algorithm>

// What happens in a schedule. Each event is told the model first, then the batcher.
namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

/// Threads that may be busy with something else: each task waits, and others may pass it.
class BusyWorkers final : public Executor {
 public:
  BusyWorkers(std::shared_ptr<VirtualLoop> loop, std::uint64_t seed, std::size_t& tasks)
      : loop_(std::move(loop)), random_(seed), tasks_(tasks) {}
  void post(Task task) override {
    ++tasks_;
    const Duration wait = std::chrono::microseconds(random_() % 60);
    loop_->schedule(loop_->now() + wait, [this, task = std::move(task)]() mutable {
      --tasks_;
      task();
    });
  }

 private:
  const std::shared_ptr<VirtualLoop> loop_;
  std::mt19937_64 random_;
  std::size_t& tasks_;
};

}  // namespace

Schedule::Schedule(std::uint64_t seed, std::ostream* log)
    : random_(seed),
      log_(log),
      loop_(std::make_shared<VirtualLoop>(seed)),
      start_(loop_->now()),
      workers_(loop_),
      plain_(chance(0.25)),
      reduces_(!plain_ && chance(0.3)),
      priorities_(!plain_ && !reduces_ && chance(0.4)),
      keys_(plain_ || reduces_ ? 1 : 3),
      weights_(!plain_ && chance(0.3) ? 400 : 1),
      model_(model()) {
  for (int rank = 1; rank <= 4; ++rank) {
    peers_.push_back({std::make_shared<PeerIdentity>(
        PeerIdentity{"peer" + std::to_string(rank), rank, static_cast<std::uint64_t>(rank)})});
  }
  if (!plain_ && chance(0.4)) workers_ = std::make_shared<BusyWorkers>(loop_, seed, tasks_);
  make_batcher();
}

// What runs ends.
Schedule::~Schedule() {
  batcher_.reset();
  loop_->run_for(1s);
}

BatchModel Schedule::model() {
  const Host here = host();
  return {some_options(), here.is_live, here.is_current,
          [this](const std::string& what) { complain(what); }};
}

void Schedule::make_batcher() {
  BatchRules<Row> rules;
  if (!plain_) rules.key = [](const Row& row) { return row.key; };
  if (priorities_) rules.priority = [](const Row& row) { return row.priority; };
  if (reduces_) {
    batcher_.emplace(model_.options(), reduce(Summing{this, token_}));
  } else {
    batcher_.emplace(
        model_.options(),
        [this, token = token_](std::vector<Row> rows, const BatchInfo& info) {
          return handle(std::move(rows), info);
        },
        std::move(rules));
  }
  batcher_->exposed_on(host());
}

Host Schedule::host() {
  Host host;
  host.name = "root";
  host.workers = workers_;
  host.loop_tasks = loop_;
  host.loop = loop_;
  host.is_live = [this](std::string_view name) {
    return name == "root" || std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
             return peer.live && peer.identity->name == name;
           });
  };
  host.is_current = [this](const PeerIdentity& identity) {
    return std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
      return peer.live && peer.identity->incarnation == identity.incarnation;
    });
  };
  host.may_be_peer = [](std::string_view) { return true; };
  host.on_change = [this](std::function<void()> handler) {
    handlers_[next_handler_] = std::move(handler);
    return next_handler_++;
  };
  host.on_end = host.on_change;
  host.forget = [this](std::uint64_t number) { handlers_.erase(number); };
  return host;
}

BatchOptions Schedule::some_options() {
  BatchOptions options;
  options.max_size = 1 + below(8);
  if (plain_ || chance(0.5)) options.max_wait = 1us + some_time(2000);
  options.max_queue = options.max_size + below(20);
  if (plain_) return options;
  if (chance(0.3)) options.min_size = 1 + below(options.max_size);
  if (chance(0.2)) {
    options.all_of = {"peer1", "peer2"};
    if (chance(0.3)) options.all_of.emplace_back("root");
  } else {
    options.all_callers = chance(0.2);
  }
  options.order_by_peer = chance(0.2);
  options.max_overtaking = 1 + below(10);
  options.on_full = chance(0.5) ? OnFull::hold : OnFull::reject;
  held_ = held_ || options.on_full == OnFull::hold;
  if (weights_ > 1) options.max_queue_bytes = 500 + below(4000);
  if (chance(0.3)) {
    options.exclusive = mutex_;
  } else if (!reduces_) {
    options.parallelism = 1 + below(3);
  }
  if (reduces_) return options;
  if (chance(0.3)) {
    for (std::size_t size = 1 + below(3); size <= options.max_size; size += 1 + below(5))
      options.preferred_sizes.push_back(size);
  }
  options.isolate = chance(0.5) ? Isolate::halves : Isolate::none;
  if (chance(0.2)) {
    options.max_wait = {};
    options.min_size = 1;
    options.all_of.clear();
    options.all_callers = false;
    options.latency_target = {.latency = 500us * (1 + below(4)),
                              .percentile = chance(0.5) ? 0.5 : 0.9};
  }
  return options;
}

ScheduledCall& Schedule::some_call() {
  const auto number = static_cast<int>(calls_.size()) * 100;
  Call& call = calls_.emplace_back();
  call.arrived = loop_->now();
  call.many = !plain_ && chance(0.2);
  const std::size_t count = call.many ? 1 + below(model_.options().max_size) : 1;
  const auto key = static_cast<int>(below(keys_));
  for (std::size_t i = 0; i < count; ++i) {
    Row row{.number = number + static_cast<int>(i), .key = key};
    if (priorities_) row.priority = static_cast<int>(below(3));
    if (weights_ > 1) row.weight = below(weights_);
    // A reducer cannot take back what it has of the same call.
    if (!plain_ && chance(0.03) && (!reduces_ || i == 0))
      row.fault = chance(0.7) ? Row::Fault::throws : Row::Fault::fails;
    call.bytes += sizeof(Row) + row.weight;
    call.rows.push_back(row);
  }
  if (!call.many) ++call.bytes;
  const std::size_t who = below(peers_.size() + 1);
  if (who < peers_.size() && (peers_[who].live || chance(0.05))) call.caller = peers_[who].identity;
  for (const ScheduledCall* other : model_.queue())
    call.ahead += other->rows.size();
  call.ahead += model_.running() * model_.options().max_size;
  return call;
}

void Schedule::arrive() {
  Call& call = some_call();
  BatchCallOptions how;
  std::optional<TimePoint> callers;
  if (!plain_ && chance(0.2)) {
    how.timeout = 1us + some_time(3000);
    call.deadline = call.arrived + how.timeout;
  }
  if (!plain_ && chance(0.1)) {
    callers = call.arrived + 1us + some_time(3000);
    call.deadline = std::min(*callers, call.deadline.value_or(*callers));
  }
  if (!plain_ && chance(0.2)) how.stop = call.stop.get_token();
  if (chance(0.02)) call.stop.request_stop();
  BatchModel::Verdict verdict = model_.judge(call, call.arrived);
  may_give_way_ = verdict.give_way;
  gave_way_ = nullptr;
  std::optional<Future<int>> one;
  std::optional<Future<std::vector<int>>> all;
  {
    const CallContext context(call.caller, callers);
    const detail::ContextScope scope(context);
    if (call.many) {
      all.emplace(batcher_->many().call_with(how, call.rows));
    } else {
      one.emplace(batcher_->call_with(how, call.rows[0]));
    }
  }
  if (!may_give_way_.empty() && gave_way_ == nullptr) {
    if (!verdict.may_be_refused) complain("nobody gave way to a caller that has fewer rows");
    verdict.refused = ErrorCode::overloaded;
  }
  may_give_way_.clear();
  note("call ", call.rows.front().number, " of ", call.rows.size(), " rows, by ",
       call.caller ? call.caller->name : "root", verdict.refused ? ": refused" : "",
       verdict.hold ? ": held" : "");
  model_.enter(call, verdict);
  if (how.stop.stop_requested()) model_.cancel(call);
  if (call.many) {
    std::move(*all).then([this, &call](const Result<std::vector<int>>& results) {
      completed(call, results ? &*results : nullptr, results.code());
    });
  } else {
    std::move(*one).then([this, &call](const Result<int>& result) {
      const std::vector<int> results(1, result ? *result : 0);
      completed(call, result ? &results : nullptr, result.code());
    });
  }
  settle();
  ++happened_["arrival"];
  if (verdict.hold && !verdict.refused) ++happened_["held"];
  if (how.stop.stop_possible() && chance(0.7))
    loop_->schedule(loop_->now() + some_time(2000), [this, &call] { stop(call); });
}

void Schedule::stop(Call& call) {
  note("stop ", call.rows.front().number);
  model_.cancel(call);
  call.stop.request_stop();
  settle();
}

void Schedule::die_or_return() {
  Peer& peer = peers_[below(peers_.size())];
  peer.live = !peer.live;
  note(peer.identity->name, peer.live ? " returns" : " dies");
  if (peer.live) {  // as another incarnation
    PeerIdentity again = *peer.identity;
    again.incarnation += 100;
    peer.identity = std::make_shared<PeerIdentity>(again);
  } else {
    ++happened_["death"];
  }
  model_.group_changed();
  const auto handlers = handlers_;
  if (!handlers.empty()) handlers.begin()->second();  // the first is that of changes
  settle();
}

void Schedule::change_settings() {
  BatchOptions options = some_options();
  if (chance(0.3)) {  // but for few
    const BatchOptions other = std::exchange(options, model_.options());
    options.order_by_peer = other.order_by_peer;
    options.max_overtaking = other.max_overtaking;
    options.on_full = other.on_full;
    LatencyTarget& target = options.latency_target;
    if (target.latency > Duration::zero() && chance(0.3)) target.latency *= 2;
    if (target.latency > Duration::zero() && chance(0.3))
      target.percentile = 1.4 - target.percentile;
    if (!options.exclusive && !reduces_ && chance(0.3)) options.parallelism = other.parallelism;
  }
  if (options.latency_target.latency > Duration::zero()) {  // a choice that is kept stays the same
    options.preferred_sizes = model_.options().preferred_sizes;
    if (!options.preferred_sizes.empty() && options.preferred_sizes.back() > options.max_size)
      options.preferred_sizes.clear();
  }
  note_options(options);
  adopt_choice();
  model_.set_options(options);
  batcher_->set_options(options);
  check_choice(batcher_->statistics());
  ++happened_["settings"];
}

void Schedule::note_options(const BatchOptions& o) {
  note("settings: max_size ", o.max_size, o.max_wait > Duration::zero() ? ", max_wait " : "",
       o.max_wait.count() / 1000, ", min_size ", o.min_size, o.all_of.empty() ? "" : ", all_of",
       o.all_callers ? ", all_callers" : "", o.preferred_sizes.empty() ? "" : ", preferred_sizes",
       o.latency_target.latency > Duration::zero() ? ", latency_target" : "",
       o.order_by_peer ? ", order_by_peer" : "", ", max_overtaking ", o.max_overtaking,
       ", max_queue ", o.max_queue, ", max_queue_bytes ", o.max_queue_bytes,
       o.on_full == OnFull::hold ? ", hold" : "", ", parallelism ", o.parallelism,
       o.exclusive ? ", exclusive" : "", o.isolate == Isolate::halves ? ", halves" : "");
}

void Schedule::take_mutex() {
  if (asked_for_mutex_ || guard_) return;
  asked_for_mutex_ = true;
  mutex_->lock().then([this](AsyncMutex::Guard guard) {
    note("mutex taken");
    ++happened_["mutex taken"];
    asked_for_mutex_ = false;
    if (model_.exclusive_runs()) complain("the mutex is to be had while a batch runs");
    guard_ = std::move(guard);
    loop_->schedule(loop_->now() + some_time(1500), [this] {
      note("mutex given back");
      AsyncMutex::Guard(std::move(guard_)).unlock();
    });
  });
}

void Schedule::event() {
  const double event = std::uniform_real_distribution<>()(random_);
  if (plain_ || event < 0.78) {
    for (std::size_t burst = chance(0.3) ? 1 + below(8) : 1; burst > 0; --burst)
      arrive();
  } else if (event < 0.84) {
    die_or_return();
  } else if (event < 0.88) {
    change_settings();
  } else if (event < 0.91) {
    note("flush");
    if (!model_.paused()) model_.flush();
    batcher_->flush();
  } else if (event < 0.935) {
    if (model_.closed()) return;
    note("pause");
    model_.pause();
    batcher_->pause();
  } else if (event < 0.965) {
    note("resume");
    model_.resume();
    batcher_->resume();
  } else if (event < 0.985) {
    take_mutex();
  } else if (event < 0.99) {
    if (!model_.options().all_callers) return;
    const std::string peer = "peer" + std::to_string(1 + below(5));
    note("expect ", peer);
    model_.expect(peer);
    batcher_->expect(peer);
  } else {  // the loop is late
    loop_->advance(some_time(1000));
    arrive();
  }
}

void Schedule::close(BatchClose how) {
  note(how == BatchClose::drain ? "drain" : "close");
  ++happened_[how == BatchClose::drain ? "drain" : "close"];
  ++closings_;
  if (how == BatchClose::drain) {
    model_.drain();
  } else {
    model_.end();
  }
  batcher_->close(how).then([this] {
    note("closed");
    ++closed_;
    if (!model_.is_empty()) complain("close() is over while rows wait or run");
    settle();
  });
  settle();
}

void Schedule::end() {
  if (!chance(0.2)) {
    model_.resume();
    batcher_->resume();
  }
  if (chance(0.1)) {  // its node ends
    note("node ends");
    ++happened_["end of the node"];
    model_.end();
    const auto handlers = handlers_;
    if (!handlers.empty()) handlers.rbegin()->second();
    settle();
  }
  close(chance(0.7) ? BatchClose::drain : BatchClose::fail);
  for (std::size_t i = below(4); i > 0; --i) {
    if (chance(0.2)) close(BatchClose::fail);
    event();
    pass(some_time(300));
    check_step();
  }
}

// What has held up the loop does not count.
void Schedule::pass(Duration time) {
  loop_->run_for(time);
  for (TimePoint now; now != loop_->now();) {
    now = loop_->now();
    loop_->run_for(Duration::zero());
  }
}

void Schedule::run() {
  note(reduces_ ? "a reducer" : "a handler");
  note_options(model_.options());
  const std::size_t events = 20 + below(60);
  for (std::size_t i = 0; i < events; ++i) {
    event();
    pass(chance(0.3) ? Duration::zero() : some_time(500));
    check_step();
    if (!complaints_.empty()) return;  // what follows from it tells nothing
  }
  end();
  pass(1s);
  check_step();
  check_end();
}

}  // namespace batchrpc::test
