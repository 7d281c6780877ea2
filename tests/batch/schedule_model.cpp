#include "batch/schedule_model.hpp"

#include <algorithm>

// What the model is told, and who comes in, is held, gives way or leaves.
namespace batchrpc::test {
namespace {

using Place = ScheduledCall::Place;

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
  if (!before.all_callers || !options.all_callers) callers_.clear();
  if (options.all_callers) {
    for (const ScheduledCall* call : queue_) {
      if (call->caller && is_live_(call->caller->name)) callers_.insert(call->caller->name);
    }
  }
  admit_held();
}

void BatchModel::flush() {
  for (ScheduledCall* call : queue_)
    call->flushed = true;
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
  std::erase_if(callers_, [this](const std::string& name) { return !is_live_(name); });
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
  } else if (rows > options_.max_size || call.bytes > options_.max_queue_bytes) {
    verdict.refused = ErrorCode::invalid_argument;
  }
  if (verdict.refused) return verdict;
  if (rows_of(queue_) + held_rows() + rows > options_.max_queue) expire(now);
  const bool fits = rows_of(queue_) + rows <= options_.max_queue;
  if (bytes() + call.bytes > options_.max_queue_bytes) {
    verdict.refused = ErrorCode::overloaded;
  } else if (options_.on_full == OnFull::hold) {
    verdict.hold = !fits || !held_.empty();
    if (verdict.hold && held_rows() + rows > options_.max_queue)
      verdict.refused = ErrorCode::overloaded;
  } else if (!fits) {
    find_who_gives_way(call, verdict);
  }
  return verdict;
}

// The newest call of who has most rows, and would still have as many as the new call's caller. Of
// several who have most, any may be chosen.
void BatchModel::find_who_gives_way(const ScheduledCall& call, Verdict& verdict) const {
  std::map<const PeerIdentity*, std::size_t> rows;
  std::size_t most = 0;
  for (const ScheduledCall* other : queue_)
    most = std::max(most, rows[other->caller.get()] += other->rows.size());
  const bool has_share = rows[call.caller.get()] + call.rows.size() >= most;
  for (const auto& [caller, count] : rows) {
    if (has_share || count != most) continue;
    ScheduledCall* newest = nullptr;
    for (ScheduledCall* other : queue_) {
      if (other->caller.get() == caller && !other->accumulated) newest = other;
    }
    if (newest == nullptr || newest->rows.size() < call.rows.size()) {
      verdict.may_be_refused = true;
    } else {
      verdict.give_way.push_back(newest);
    }
  }
  if (verdict.give_way.empty()) verdict.refused = ErrorCode::overloaded;
}

void BatchModel::enter(ScheduledCall& call, const Verdict& verdict) {
  if (verdict.refused) {
    call.fails(Fate::rejected, *verdict.refused);
    unsettled_.push_back(&call);
    return;
  }
  if (!verdict.hold) {
    enqueue(call);
    admit_held();
    return;
  }
  call.place = Place::held;
  const auto line = std::find_if(held_.begin(), held_.end(), [&](const ScheduledCalls& other) {
    return other.front()->caller == call.caller;
  });
  if (line != held_.end()) {
    line->push_back(&call);
  } else {
    held_.push_back({&call});
  }
}

void BatchModel::enqueue(ScheduledCall& call) {
  call.place = Place::queue;
  queue_.push_back(&call);
  if (options_.all_callers && call.caller) callers_.insert(call.caller->name);
}

// While the call whose turn it is fits, the callers come in turn. One that is larger than the whole
// queue comes alone.
void BatchModel::admit_held() {
  while (!held_.empty()) {
    ScheduledCall& next = *held_.front().front();
    if (!queue_.empty() && rows_of(queue_) + next.rows.size() > options_.max_queue) return;
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

// A reducer has used those of the calls that it has accumulated.
std::size_t BatchModel::bytes() const {
  std::size_t bytes = 0;
  for (const ScheduledCall* call : queue_)
    bytes += call->accumulated ? 0 : call->bytes;
  for (const ScheduledCalls& line : held_) {
    for (const ScheduledCall* call : line)
      bytes += call->bytes;
  }
  return bytes;
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
}

}  // namespace batchrpc::test
