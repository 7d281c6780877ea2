#include <algorithm>

#include "batch/schedule.hpp"

// What happens in a schedule. Each event is told the model first, then the batcher.
namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

}  // namespace

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
  const bool taken_back = how.stop.stop_requested();
  BatchModel::Verdict verdict = taken_back ? BatchModel::Verdict{.refused = ErrorCode::cancelled}
                                           : model_.judge(call, call.arrived);
  may_give_way_ = verdict.ways;
  gave_way_.clear();
  std::optional<Future<int>> one;
  std::optional<Future<std::vector<int>>> all;
  {
    const CallContext context(call.caller, callers);
    const detail::ContextScope scope(context);
    if (call.many) {
      all.emplace(batcher_->many().with(how)(call.rows));
    } else {
      one.emplace(batcher_->with(how)(call.rows[0]));
    }
  }
  check_who_gave_way(verdict);
  note("call ", call.rows.front().number, " of ", call.rows.size(), " rows, by ",
       call.caller ? call.caller->name : "root", verdict.refused ? ": refused" : "");
  if (model_.enter(call, verdict)) {
    note("it is held");
    ++happened_["held"];
  }
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
    if (!reduces_ && chance(0.3)) options.parallelism = other.parallelism;
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
       o.preferred_sizes.empty() ? "" : ", preferred_sizes",
       o.latency_target.latency > Duration::zero() ? ", latency_target" : "",
       o.order_by_peer ? ", order_by_peer" : "", ", max_overtaking ", o.max_overtaking,
       ", max_queue ", o.max_queue, ", max_queue_bytes ", o.max_queue_bytes,
       o.on_full == OnFull::wait ? ", wait" : "", ", parallelism ", o.parallelism,
       o.isolate == Isolate::bisect ? ", bisect" : "");
}

void Schedule::take_mutex() {
  if (asked_for_mutex_ || guard_) return;
  asked_for_mutex_ = true;
  mutex_->lock().then([this](AsyncMutex::Guard guard) {
    note("mutex taken");
    ++happened_["mutex taken"];
    asked_for_mutex_ = false;
    if (exclusive_runs()) complain("the mutex is to be had while a batch runs");
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
    note("pause");
    model_.pause();
    batcher_->pause();
  } else if (event < 0.965) {
    note("resume");
    model_.resume();
    batcher_->resume();
  } else if (event < 0.985) {
    take_mutex();
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
  if (chance(0.2)) take_mutex();
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

}  // namespace batchrpc::test
