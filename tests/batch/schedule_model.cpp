#include "batch/schedule_model.hpp"

#include <algorithm>

// What the model is told, and who comes in, is held, gives way or leaves.
namespace batchrpc::test {
namespace {

using Place = ScheduledCall::Place;
using Measure = std::size_t (*)(const ScheduledCall& call);

std::size_t rows_in(const ScheduledCall& call) { return call.rows.size(); }
// A reducer has used those of the calls that it has accumulated.
std::size_t bytes_in(const ScheduledCall& call) { return call.accumulated ? 0 : call.bytes; }

std::size_t sum_of(const ScheduledCalls& calls, Measure measure) {
  std::size_t sum = 0;
  for (const ScheduledCall* call : calls)
    sum += measure(*call);
  return sum;
}

// As which a call counts that did not come in.
Fate fate_of(ErrorCode refused) {
  switch (refused) {
    case ErrorCode::peer_lost:
      return Fate::left;
    case ErrorCode::cancelled:
      return Fate::cancelled;
    case ErrorCode::shut_down:
      return Fate::dropped;
    case ErrorCode::invalid_argument:
      return Fate::invalid;
    default:
      return Fate::rejected;
  }
}

std::size_t largest_call(const BatchOptions& options) {
  return options.preferred_sizes.empty() ? options.max_size : options.preferred_sizes.back();
}

ScheduledCalls without(ScheduledCalls calls, const ScheduledCalls& those) {
  std::erase_if(calls, [&](ScheduledCall* call) {
    return std::find(those.begin(), those.end(), call) != those.end();
  });
  return calls;
}

// Which of `calls` go for a newcomer: the newest of who has most, as long as that has more than the
// newcomer's would have. Nothing: that is not enough. An outcome for each caller that has most.
std::vector<std::optional<ScheduledCalls>> who_goes(const ScheduledCalls& calls,
                                                    const ScheduledCall& newcomer, Measure measure,
                                                    std::size_t excess) {
  std::map<const PeerIdentity*, std::size_t> shares;
  for (const ScheduledCall* call : calls)
    shares[call->caller.get()] += measure(*call);
  const std::size_t fair = shares[newcomer.caller.get()] + measure(newcomer);
  std::size_t most = 0;
  for (const auto& [caller, share] : shares)
    most = std::max(most, share);
  if (most <= fair) return {std::nullopt};
  std::vector<std::optional<ScheduledCalls>> outcomes;
  for (const auto& [caller, share] : shares) {
    if (share != most) continue;
    ScheduledCalls go;
    std::size_t freed = 0;
    for (auto at = calls.rbegin(); at != calls.rend(); ++at) {
      if (freed >= excess || freed >= most - fair) break;
      if ((*at)->caller.get() != caller || (*at)->accumulated) continue;
      go.push_back(*at);
      freed += measure(**at);
    }
    const bool is_fair = freed >= excess && freed <= most - fair;
    outcomes.push_back(is_fair ? std::optional(go) : std::nullopt);
  }
  return outcomes;
}

}  // namespace

BatchModel::BatchModel(BatchOptions options, IsLive is_live, IsCurrent is_current,
                       Complain complain)
    : is_live_(std::move(is_live)),
      is_current_(std::move(is_current)),
      complain_(std::move(complain)) {
  set_options(options);
}

// A choice begins anew when what it depends on changes.
void BatchModel::set_options(const BatchOptions& options) {
  const BatchOptions before = std::exchange(options_, options);
  shared_options_ = std::make_shared<const BatchOptions>(options);
  const LatencyTarget& target = options.latency_target;
  const bool keeps_choice =
      target.latency > Duration::zero() && target.latency == before.latency_target.latency &&
      target.percentile == before.latency_target.percentile &&
      options.max_size == before.max_size && options.parallelism == before.parallelism &&
      options.preferred_sizes == before.preferred_sizes;
  if (!keeps_choice) {
    in_force_ = {options.max_size, options.min_size, options.max_wait};
    if (!options.preferred_sizes.empty()) in_force_.size = options.preferred_sizes.back();
  }
  ScheduledCalls all = queue_;
  const ScheduledCalls held = held_calls();
  all.insert(all.end(), held.begin(), held.end());
  for (ScheduledCall* call : all) {
    if (call->rows.size() > largest_call(options) && !call->accumulated)
      drop(*call, Fate::invalid, ErrorCode::invalid_argument);
  }
  admit_held();
}

void BatchModel::flush() {
  if (queue_.empty()) return;
  flush_queue(BatchReason::flush);
  for (ScheduledCall* call : held_calls())
    call->flushed = BatchReason::flush;
}

void BatchModel::flush_queue(BatchReason why) {
  for (ScheduledCall* call : queue_)
    call->flushed = why;
}

void BatchModel::drain() {
  closed_ = true;
  draining_ = true;
  paused_ = false;
}

void BatchModel::end() {
  closed_ = true;
  draining_ = false;
  while (!queue_.empty())
    drop(*queue_.front(), Fate::dropped, ErrorCode::shut_down);
  while (!held_.empty())
    drop(*held_.front().front(), Fate::dropped, ErrorCode::shut_down);
}

void BatchModel::group_changed() {
  ScheduledCalls gone;
  const auto look_at = [&](const ScheduledCalls& calls) {
    for (ScheduledCall* call : calls) {
      if (call->caller && !call->accumulated && !is_current_(*call->caller)) gone.push_back(call);
    }
  };
  look_at(queue_);
  for (const ScheduledCalls& line : held_)
    look_at(line);
  for (ScheduledCall* call : gone)
    drop(*call, Fate::left, ErrorCode::peer_lost);
  admit_held();
}

void BatchModel::cancel(ScheduledCall& call) {
  if (!call.waits() || call.accumulated) return;
  drop(call, Fate::cancelled, ErrorCode::cancelled);
  admit_held();
}

bool BatchModel::has_expired(TimePoint now) const {
  const auto has_in = [now](const ScheduledCalls& calls) {
    return std::any_of(calls.begin(), calls.end(), [now](const ScheduledCall* call) {
      return call->deadline && *call->deadline <= now && !call->accumulated;
    });
  };
  return has_in(queue_) || std::any_of(held_.begin(), held_.end(), has_in);
}

void BatchModel::expire(TimePoint now) {
  if (!has_expired(now)) return;
  ScheduledCalls all = queue_;
  for (const ScheduledCalls& line : held_)
    all.insert(all.end(), line.begin(), line.end());
  for (ScheduledCall* call : all) {
    if (call->deadline && *call->deadline <= now && !call->accumulated)
      drop(*call, Fate::expired, ErrorCode::timed_out);
  }
  admit_held();
}

// --- who comes in

BatchModel::Verdict BatchModel::judge(const ScheduledCall& call, TimePoint now) {
  Verdict verdict;
  const std::size_t rows = call.rows.size();
  if (closed_) {
    verdict.refused = ErrorCode::shut_down;
  } else if (call.caller && !is_current_(*call.caller)) {
    verdict.refused = ErrorCode::peer_lost;
  } else if (rows > largest_call(options_) || call.bytes > options_.max_queue_bytes) {
    verdict.refused = ErrorCode::invalid_argument;
  }
  if (verdict.refused) return verdict;
  if (rows_of(queue_) + held_rows() + rows > options_.max_queue) expire(now);
  verdict.ways = {{}};
  find_bytes(call, verdict);
  find_rows(call, verdict);
  if (verdict.ways.empty()) verdict.refused = ErrorCode::overloaded;
  std::erase_if(verdict.ways, [](const ScheduledCalls& way) { return way.empty(); });
  return verdict;
}

// First those of the queue go; where these are not enough, those that are held.
void BatchModel::find_bytes(const ScheduledCall& call, Verdict& verdict) const {
  const std::size_t all = bytes() + call.bytes;
  if (all <= options_.max_queue_bytes) return;
  verdict.ways.clear();
  const auto look_at = [&](const ScheduledCalls& calls) {
    bool is_enough = true;
    for (auto& outcome : who_goes(calls, call, bytes_in, all - options_.max_queue_bytes)) {
      is_enough = is_enough && outcome;
      if (outcome) verdict.ways.push_back(*std::move(outcome));
    }
    return is_enough;
  };
  if (!look_at(queue_) && !look_at(held_calls())) verdict.may_be_refused = true;
}

void BatchModel::find_rows(const ScheduledCall& call, Verdict& verdict) const {
  std::vector<ScheduledCalls> ways;
  for (const ScheduledCalls& way : verdict.ways) {
    const ScheduledCalls queue = without(queue_, way);
    const ScheduledCalls held = without(held_calls(), way);
    const bool holds = options_.on_full == OnFull::wait;
    const bool fits = rows_of(queue) + call.rows.size() <= options_.max_queue;
    const ScheduledCalls& calls = holds ? held : queue;
    const std::size_t rows = rows_of(calls) + call.rows.size();
    if ((fits && (!holds || held.empty())) || rows <= options_.max_queue) {
      ways.push_back(way);
      continue;
    }
    if (!way.empty()) {  // they give way for one thing only
      verdict.may_be_refused = true;
      continue;
    }
    for (const auto& outcome : who_goes(calls, call, rows_in, rows - options_.max_queue)) {
      if (!outcome) {
        verdict.may_be_refused = true;
        continue;
      }
      ways.push_back(*outcome);
    }
  }
  verdict.ways = std::move(ways);
}

bool BatchModel::enter(ScheduledCall& call, const Verdict& verdict) {
  if (verdict.refused) {
    call.fails(fate_of(*verdict.refused), *verdict.refused);
    lacked_room_ = lacked_room_ || verdict.refused == ErrorCode::overloaded;
    unsettled_.push_back(&call);
    return false;
  }
  const bool fits = rows_of(queue_) + call.rows.size() <= options_.max_queue && held_.empty();
  if (fits || options_.on_full == OnFull::reject) {
    enqueue(call);
    admit_held();
    return false;
  }
  lacked_room_ = true;
  call.place = Place::held;
  const auto line = std::find_if(held_.begin(), held_.end(), [&](const ScheduledCalls& other) {
    return other.front()->caller == call.caller;
  });
  if (line != held_.end()) {
    line->push_back(&call);
  } else {
    held_.push_back({&call});
  }
  admit_held();
  return call.place == Place::held;
}

void BatchModel::enqueue(ScheduledCall& call) {
  call.place = Place::queue;
  queue_.push_back(&call);
  if (call.flushed) {  // while it was held: nor do those before it wait any more
    for (ScheduledCall* other : lane(call.key()))
      other->flushed = call.flushed;
  }
}

// While the call whose turn it is fits, the callers come in turn.
void BatchModel::admit_held() {
  while (!held_.empty()) {
    ScheduledCall& next = *held_.front().front();
    if (rows_of(queue_) + next.rows.size() > options_.max_queue) return;
    ScheduledCalls line = held_.front();
    held_.pop_front();
    line.erase(line.begin());
    if (!line.empty()) held_.push_back(line);
    enqueue(next);
  }
}

std::size_t BatchModel::held_rows() const {
  std::size_t rows = 0;
  for (const ScheduledCalls& line : held_)
    rows += rows_of(line);
  return rows;
}

std::size_t BatchModel::bytes() const {
  return sum_of(queue_, bytes_in) + sum_of(held_calls(), bytes_in);
}

ScheduledCalls BatchModel::held_calls() const {
  ScheduledCalls held;
  for (const ScheduledCalls& line : held_)
    held.insert(held.end(), line.begin(), line.end());
  return held;
}

// --- who leaves

void BatchModel::drop(ScheduledCall& call, Fate fate, ErrorCode error) {
  if (call.place == Place::queue) {
    leave_queue(call);
  } else if (call.place == Place::held) {
    for (ScheduledCalls& line : held_)
      std::erase(line, &call);
    std::erase_if(held_, [](const ScheduledCalls& line) { return line.empty(); });
  } else {
    complain_("a call is dropped that does not wait");
  }
  call.place = Place::nowhere;
  call.fails(fate, error);
  unsettled_.push_back(&call);
}

// It has overtaken those of its key that came before.
void BatchModel::leave_queue(ScheduledCall& call) {
  for (ScheduledCall* other : queue_) {
    if (other == &call) break;
    if (other->key() == call.key()) ++other->overtaken;
  }
  std::erase(queue_, &call);
  if (lane(call.key()).empty()) passed_.erase(call.key());
  if (queue_.empty() && held_.empty()) lacked_room_ = false;
}

}  // namespace batchrpc::test
