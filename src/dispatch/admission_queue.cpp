#include "dispatch/admission_queue.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

constexpr Duration kLongestRetryAfter = std::chrono::seconds(10);
// The shortest time between two log lines about refused calls.
constexpr Duration kLogEvery = std::chrono::seconds(10);

std::string in_milliseconds(Duration duration) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(duration).count()) + " ms";
}

std::string calls(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " call" : " calls");
}

}  // namespace

class AdmissionQueue::Place final : public detail::AdmissionPermit {
 public:
  Place(std::shared_ptr<AdmissionQueue> queue, const std::string& peer, Line& line, WorkTime& work)
      : peer_(peer), line_(line), work_(work), queue_(std::move(queue)) {}
  ~Place() override { queue_->leave(*this); }

  static Place& of(const detail::IncomingCall& call) { return static_cast<Place&>(*call.permit()); }

  const std::string& peer_;  // the key of the line
  Line& line_;
  WorkTime& work_;                    // the work time of its function
  std::optional<TimePoint> started_;  // empty while it waits

 private:
  const std::shared_ptr<AdmissionQueue> queue_;
};

bool AdmissionQueue::limits_anything(const CallLimits& limits) noexcept {
  return limits.accepted > 0 || limits.accepted_per_peer > 0 || limits.running > 0 ||
         limits.running_per_peer > 0;
}

AdmissionQueue::AdmissionQueue(const CallLimits& limits, std::shared_ptr<Loop> loop,
                               std::shared_ptr<Executor> workers, Log log, std::string node)
    : limits_(limits),
      loop_(std::move(loop)),
      workers_(std::move(workers)),
      log_(std::move(log)),
      node_(std::move(node)) {}

// --- admission

std::exception_ptr AdmissionQueue::accept(const std::string& function, detail::IncomingCall& call) {
  const TimePoint now = loop_->now();
  const auto deadline = call.context().deadline();
  if (deadline && *deadline <= now) {
    return std::make_exception_ptr(TimedOut(
        "'" + function + "' reached " + node_ + " after its deadline; it never ran", false));
  }
  const std::string& peer = call.context().caller().name;
  Calls expired;  // their places become free
  std::optional<Refusal> refused;
  std::string logged;
  {
    const std::lock_guard lock(mutex_);
    take_expired(now, expired);
    const auto at = lines_.try_emplace(peer).first;
    Line& line = at->second;
    WorkTime& work = work_of_[function];
    refused = refusal(peer, line, expected_of(work), deadline, now);
    if (!refused) {
      ++accepted_;
      ++line.accepted;
      call.hold(std::make_unique<Place>(shared_from_this(), at->first, line, work));
    } else {
      if (line.accepted == 0) lines_.erase(at);
      ++refused_;
      ++refused_in_all_;
      logged = line_to_log(now);
    }
  }
  answer_expired(expired);
  if (!refused) return nullptr;
  if (!logged.empty()) log_.warning(logged + "'" + function + "' of " + peer + ": " + refused->why);
  return std::make_exception_ptr(Overloaded(
      "no room for '" + function + "' on " + node_ + ": " + refused->why, refused->retry_after));
}

std::optional<AdmissionQueue::Refusal> AdmissionQueue::refusal(const std::string& peer, Line& line,
                                                               Duration work,
                                                               std::optional<TimePoint> deadline,
                                                               TimePoint now) {
  const auto count_taken = [](std::size_t limit, std::size_t count) {
    return limit > 0 && count >= limit;
  };
  const bool all_taken = count_taken(limits_.accepted, accepted_);
  const bool own_taken = count_taken(limits_.accepted_per_peer, line.accepted);
  const Duration wait = expected_wait(line, deadline.value_or(TimePoint::max()));
  // About the mean time between two replies, which is the time until a place is free.
  const auto at_once = static_cast<std::int64_t>(std::max<std::size_t>(running_, 1));
  const auto pause = [&](Duration estimate) {
    return std::min<Duration>(std::max<Duration>(estimate, work / at_once), kLongestRetryAfter);
  };
  if (all_taken || own_taken) {
    const std::string who = own_taken ? " of " + peer : "";
    return Refusal{calls(own_taken ? line.accepted : accepted_) + who +
                       " are queued or running (NodeOptions::limits.calls." +
                       (own_taken ? "accepted_per_peer)" : "accepted)"),
                   pause(wait / 2)};
  }
  if (!deadline || wait == Duration::zero()) return std::nullopt;
  // The estimate may be wrong, and a call that ends too late has taken the place of another call
  // for nothing. Goodput stays at the capacity if a call waits for half of its time at most.
  const Duration left = *deadline - now;
  if (2 * wait + work <= left) return std::nullopt;
  return Refusal{"it would be queued for about " + in_milliseconds(wait) + " of the " +
                     in_milliseconds(left) + " left until its deadline, and run for about " +
                     in_milliseconds(work) + " (NodeOptions::limits.calls)",
                 pause(wait - std::max<Duration>(left - work, Duration::zero()) / 2)};
}

bool AdmissionQueue::has_room_to_run() const noexcept {
  return limits_.running == 0 || running_ < limits_.running;
}

bool AdmissionQueue::may_run(const Line& line) const noexcept {
  return limits_.running_per_peer == 0 || line.running < limits_.running_per_peer;
}

// The time until a call that comes now would start. A running call has to end first, and all calls
// before the new one.
Duration AdmissionQueue::expected_wait(const Line& line, TimePoint deadline) {
  if (has_room_to_run() && may_run(line)) return Duration::zero();
  const Duration mean = work_of_all_.expected();
  Duration all = mean;
  for (auto& [name, other] : lines_) {
    other.ahead = other.work;
    all += other.work;
  }
  if (limits_.order == QueueOrder::earliest_deadline) {  // it passes calls with later deadlines
    for (auto at = expiries_.rbegin(); at != expiries_.rend() && at->first.first > deadline; ++at) {
      Line& other = *at->second.first;
      const Duration work = other.waiting.at(at->second.second).work;
      other.ahead -= work;
      all -= work;
    }
  }
  const auto own_share = static_cast<std::int64_t>(limits_.running_per_peer);
  const auto share = static_cast<std::int64_t>(limits_.running);
  Duration wait = share > 0 ? all / share : Duration::zero();
  if (own_share == 0) return std::max(wait, Duration(1));
  // Meanwhile another peer gets its share at most, however much of its work waits.
  constexpr int kRounds = 3;
  for (int round = 0; share > 0 && round < kRounds; ++round) {
    Duration before = mean;
    for (const auto& [name, other] : lines_) {
      before += &other == &line ? other.ahead : std::min(other.ahead, wait * own_share);
    }
    wait = before / share;
  }
  return std::max({wait, (line.ahead + mean) / own_share, Duration(1)});
}

// The work time of the function. If it is not known, that of all functions.
Duration AdmissionQueue::expected_of(const WorkTime& function) const noexcept {
  return (function.is_known() ? function : work_of_all_).expected();
}

std::string AdmissionQueue::line_to_log(TimePoint now) {
  if (logged_at_ && now - *logged_at_ < kLogEvery) return {};
  logged_at_ = now;
  return calls(std::exchange(refused_, 0)) + " refused for lack of room, the latest ";
}

// --- waiting

void AdmissionQueue::run(DispatchedCall dispatched) {
  std::exception_ptr closed;
  bool cancelled = false;
  Turn expiry;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    if (!closed) {
      const Place& place = Place::of(dispatched.call);
      Line& line = place.line_;
      const TimePoint deadline = dispatched.call.context().deadline().value_or(TimePoint::max());
      const std::uint64_t number = next_number_++;
      const bool in_order = limits_.order == QueueOrder::fifo;
      const Turn turn{in_order ? TimePoint::min() : deadline, number};
      const Duration work = expected_of(place.work_);
      expiry = {deadline, number};
      auto hook = std::make_unique<Hook>(weak_from_this(), expiry);
      cancelled = !hook->attach(detail::ContextAccess::call(dispatched.call.context()));
      line.work += work;
      line.waiting.try_emplace(turn, Waiting{std::move(dispatched), work, std::move(hook)});
      expiries_.try_emplace(expiry, &line, turn);
      list(line);
    }
  }
  if (closed) {
    dispatched.call.refuse(closed);
    return;
  }
  if (cancelled) drop(expiry);
  start_next();
}

// A call that waits was cancelled, and its place becomes free.
void AdmissionQueue::drop(const Turn& expiry) {
  std::optional<Waiting> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = expiries_.find(expiry);
  if (at == expiries_.end()) return;
  const auto [line, turn] = at->second;
  dropped.emplace(take(*line, line->waiting.find(turn)));
}

// Updates the line's entry in ready_.
void AdmissionQueue::list(Line& line) {
  std::optional<Turn> turn;
  if (!line.waiting.empty() && may_run(line)) turn = line.waiting.begin()->first;
  if (turn == line.listed) return;
  if (line.listed) ready_.erase(*line.listed);
  if (turn) ready_.emplace(*turn, &line);
  line.listed = turn;
}

AdmissionQueue::Waiting AdmissionQueue::take(Line& line, std::map<Turn, Waiting>::iterator at) {
  const TimePoint deadline =
      at->second.dispatched.call.context().deadline().value_or(TimePoint::max());
  expiries_.erase({deadline, at->first.second});
  Waiting taken = std::move(at->second);
  line.work -= taken.work;
  line.waiting.erase(at);
  list(line);
  return taken;
}

void AdmissionQueue::take_expired(TimePoint now, Calls& expired) {
  while (!expiries_.empty() && expiries_.begin()->first.first <= now) {
    const auto [line, turn] = expiries_.begin()->second;
    expired.push_back(take(*line, line->waiting.find(turn)));
  }
}

void AdmissionQueue::answer_expired(Calls& expired) const {
  for (auto& [dispatched, work, hook] : expired) {
    dispatched.call.refuse(std::make_exception_ptr(
        TimedOut("'" + dispatched.function->name + "' was queued on " + node_ +
                     " until its deadline; it never ran (NodeOptions::limits.calls)",
                 false)));
  }
}

void AdmissionQueue::start_next() {
  Calls expired;
  Calls starting;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = loop_->now();
    take_expired(now, expired);
    while (!ready_.empty() && has_room_to_run()) {
      Line& line = *ready_.begin()->second;
      Waiting next = take(line, line.waiting.begin());
      ++running_;
      ++line.running;
      Place::of(next.dispatched.call).started_ = now;
      list(line);
      starting.push_back(std::move(next));
    }
  }
  answer_expired(expired);
  for (Waiting& next : starting) {
    workers_->post([dispatched = std::move(next.dispatched)]() mutable { dispatched.run(); });
  }
}

// A call was answered.
void AdmissionQueue::leave(Place& place) {
  {
    const std::lock_guard lock(mutex_);
    Line& line = place.line_;
    --accepted_;
    --line.accepted;
    if (place.started_) {
      --running_;
      --line.running;
      if (place.ran) {
        const Duration work = loop_->now() - *place.started_;
        place.work_.add(work);
        work_of_all_.add(work);
      }
      list(line);
    }
    if (line.accepted == 0) lines_.erase(lines_.find(place.peer_));
  }
  if (place.started_) start_next();
}

QueueMetrics AdmissionQueue::metrics() {
  const std::lock_guard lock(mutex_);
  return {.limited = true,
          .accepted = accepted_,
          .running = running_,
          .waiting = expiries_.size(),
          .refused = refused_in_all_};
}

void AdmissionQueue::close(const std::exception_ptr& error) {
  Calls waiting;
  std::size_t unreported = 0;
  {
    const std::lock_guard lock(mutex_);
    closed_ = error;
    unreported = std::exchange(refused_, 0);
    for (auto& [name, line] : lines_) {
      while (!line.waiting.empty())
        waiting.push_back(take(line, line.waiting.begin()));
    }
  }
  if (unreported > 0) {
    log_.warning(calls(unreported) +
                 " refused for lack of room since the last such line, until the node ended");
  }
  for (Waiting& next : waiting)
    next.dispatched.call.refuse(error);
}

}  // namespace batchrpc
