#include "batch/schedule.hpp"

#include <algorithm>

namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

constexpr int kPoison = 1'000'000;  // rows above it make the handler throw
int answer_to(int row) { return row * 3 + 7; }
bool is_poison(int row) { return row >= kPoison; }

}  // namespace

Schedule::Schedule(std::uint64_t seed)
    : random_(seed), loop_(std::make_shared<VirtualLoop>(seed)), plain_(chance(0.3)) {
  priorities_ = !plain_ && chance(0.3);
  for (int rank = 1; rank <= 4; ++rank) {
    peers_.push_back({std::make_shared<PeerIdentity>(
        PeerIdentity{"peer" + std::to_string(rank), rank, static_cast<std::uint64_t>(rank)})});
  }
  options_ = some_options();
  most_parallel_ = options_.parallelism;
  BatchRules<int> rules;
  if (!plain_) rules.key = [](int row) { return row % 3; };
  if (priorities_) rules.priority = [](int row) { return row % 2; };
  batcher_.emplace(
      options_,
      [this](std::vector<int> rows, const BatchInfo& info) {
        return handle(std::move(rows), info);
      },
      std::move(rules));
  batcher_->exposed_on(host());
}

Schedule::~Schedule() { batcher_.reset(); }

Host Schedule::host() {
  Host host;
  host.workers = loop_;
  host.loop_tasks = loop_;
  host.loop = loop_;
  host.is_live = [this](std::string_view name) {
    return std::any_of(peers_.begin(), peers_.end(),
                       [&](const Peer& peer) { return peer.live && peer.identity->name == name; });
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
  if (options.max_wait > Duration::zero() && chance(0.3)) options.all_of = {"peer1", "peer2"};
  if (options.all_of.empty() && options.max_wait > Duration::zero())
    options.all_callers = chance(0.2);
  if (chance(0.3)) options.preferred_sizes = {1 + below(options.max_size)};
  if (options.preferred_sizes == std::vector<std::size_t>{1} && options.max_size > 3)
    options.preferred_sizes.push_back(3);
  options.order_by_peer = chance(0.2);
  options.max_overtaking = 1 + below(10);
  options.on_full = chance(0.5) ? OnFull::hold : OnFull::reject;
  held_ = held_ || options.on_full == OnFull::hold;
  options.parallelism = 1 + below(3);
  options.isolate = chance(0.5) ? Isolate::halves : Isolate::none;
  return options;
}

void Schedule::arrive() {
  Call& call = calls_.emplace_back();
  const std::size_t number = calls_.size();
  call.key = plain_ ? 0 : static_cast<int>(below(3));
  const int parity = static_cast<int>(below(2));
  call.priority = priorities_ ? parity : 0;
  call.many = !plain_ && chance(0.2);
  const std::size_t count = call.many ? 1 + below(options_.max_size) : 1;
  for (std::size_t i = 0; i < count; ++i) {
    // Unlike all others, and of the key and the priority that were drawn.
    int row = static_cast<int>(number * 100 + i) * 6;
    while (row % 3 != call.key || row % 2 != parity)
      ++row;
    if (!plain_ && chance(0.03)) row += kPoison / 6 * 6 + 6;
    while (row % 3 != call.key || row % 2 != parity)
      ++row;
    call.rows.push_back(row);
    call_of_row_[row] = number - 1;
  }
  call.arrived = loop_->now();
  const std::size_t who = below(peers_.size() + 1);
  if (who < peers_.size() && peers_[who].live) call.caller = peers_[who].identity;
  const BatchStatistics before = batcher_->statistics();
  call.ahead = before.queued + before.running * options_.max_size;
  BatchCallOptions how;
  if (!plain_ && chance(0.2)) {
    how.timeout = 1us + some_time(3000);
    call.deadline = call.arrived + how.timeout;
  }
  if (!plain_ && chance(0.2)) how.stop = call.stop.get_token();
  const CallContext context(call.caller, std::nullopt);
  std::optional<detail::ContextScope> scope;
  if (call.caller) scope.emplace(context);
  if (call.many) {
    call.all.emplace(batcher_->many().call_with(how, call.rows));
  } else {
    call.one.emplace(batcher_->call_with(how, call.rows[0]));
  }
  scope.reset();
  ++happened_["arrival"];
  if (how.stop.stop_possible() && chance(0.7)) {
    loop_->schedule(loop_->now() + some_time(2000), [&call] { call.stop.request_stop(); });
  }
}

void Schedule::die_or_return() {
  Peer& peer = peers_[below(peers_.size())];
  if (peer.live) {
    peer.live = false;
    for (Call& call : calls_) {
      if (call.caller == peer.identity && !call.started) call.caller_died = true;
    }
    ++happened_["death"];
  } else {  // as another incarnation
    PeerIdentity again = *peer.identity;
    again.incarnation += 100;
    peer.identity = std::make_shared<PeerIdentity>(again);
    peer.live = true;
  }
  const auto handlers = handlers_;
  if (!handlers.empty()) handlers.begin()->second();  // the first is that of changes
}

void Schedule::change_settings() {
  BatchOptions options = some_options();
  options.max_queue += 8;  // what waits stays
  options_ = options;
  most_parallel_ = std::max(most_parallel_, options.parallelism);
  batcher_->set_options(options);
  ++happened_["settings"];
}

Future<std::vector<Result<int>>> Schedule::handle(std::vector<int> rows, const BatchInfo& info) {
  ++running_;
  if (running_ > most_parallel_) complain("more batches run at once than parallelism allows");
  check_batch(rows, info);
  std::vector<Result<int>> results;
  bool poisoned = false;
  for (const int row : rows) {
    poisoned = poisoned || is_poison(row);
    results.emplace_back(answer_to(row));
  }
  const Duration takes = chance(0.3) ? Duration::zero() : some_time(800);
  longest_handler_ = std::max(longest_handler_, takes);
  if (takes == Duration::zero()) {
    --running_;
    if (poisoned) throw std::domain_error("poison");
    return make_ready_future(std::move(results));
  }
  auto promise = std::make_shared<Promise<std::vector<Result<int>>>>();
  auto future = promise->get_future();
  loop_->schedule(loop_->now() + takes,
                  [this, promise, poisoned, results = std::move(results)]() mutable {
                    --running_;
                    if (poisoned) {
                      promise->set_error(std::domain_error("poison"));
                    } else {
                      promise->set_value(std::move(results));
                    }
                  });
  return future;
}

void Schedule::check_batch(const std::vector<int>& rows, const BatchInfo& info) {
  ++happened_["batch by " + std::string(to_string(info.reason))];
  // A change of max_size counts from the next batch on, and this is the next.
  const BatchOptions now = batcher_->options();
  // But halves are run again under the settings of their batch, and calls that came before are not
  // cut.
  const bool again = calls_[call_of_row_.at(rows[0])].started.has_value();
  if (info.rows > now.max_size && info.calls.size() > 1 && !again)
    complain("a batch is larger than max_size");
  if (rows.size() != info.rows + info.padding) complain("the handler got another number of rows");
  const auto& sizes = now.preferred_sizes;
  if (!sizes.empty() && rows.size() <= sizes.back() && !again &&
      std::find(sizes.begin(), sizes.end(), rows.size()) == sizes.end()) {
    complain("a batch has no preferred size");
  }
  std::vector<const Call*> batch;
  std::size_t at = 0;
  for (const BatchInfo::Call& part : info.calls) {
    Call& call = calls_[call_of_row_.at(rows[at])];
    if (part.first_row != at || part.rows != call.rows.size()) complain("a call has another place");
    if (!std::equal(call.rows.begin(), call.rows.end(),
                    rows.begin() + static_cast<std::ptrdiff_t>(at)))
      complain("a call's rows are torn apart");
    if (call.key != calls_[call_of_row_.at(rows[0])].key) complain("two keys in one batch");
    if (call.caller != part.caller) complain("a call has another's caller");
    if (call.deadline && *call.deadline <= info.started) complain("an expired row runs");
    if (call.caller_died && !call.started) complain("a row of a dead caller runs");
    if (!call.started) {
      call.started = info.started;
      check_wait(call);
    }
    batch.push_back(&call);
    at += part.rows;
  }
  if (!again) check_order(batch);
}

void Schedule::check_order(const std::vector<const Call*>& batch) {
  const bool by_peer = batcher_->options().order_by_peer;
  for (std::size_t i = 1; i < batch.size(); ++i) {
    const Call& a = *batch[i - 1];
    const Call& b = *batch[i];
    const int rank_a = a.caller ? a.caller->rank : -2;
    const int rank_b = b.caller ? b.caller->rank : -2;
    if (by_peer && rank_a > rank_b) complain("rows are not in the order of ranks");
    if (!by_peer && !priorities_ && b.arrived < a.arrived && !held_)
      complain("rows are not in the order of their arrival");
  }
}

// At most max_wait, and the time of the batches that its place in the queue puts before it.
void Schedule::check_wait(const Call& call) {
  if (!plain_) return;
  const auto batches = static_cast<Duration::rep>(call.ahead / options_.max_size + 1);
  const Duration bound = options_.max_wait + batches * 800us;
  if (*call.started - call.arrived > bound) complain("a row waited for too long");
}

void Schedule::check_end(Call& call) {
  const bool ready = call.many ? call.all->ready() : call.one->ready();
  if (!ready) return complain("a call was never completed");
  std::exception_ptr error;
  try {
    std::vector<int> results;
    if (call.many) {
      results = std::move(*call.all).get();
    } else {
      results.push_back(std::move(*call.one).get());
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] != answer_to(call.rows[i])) complain("a row has another's result");
    }
    if (results.size() != call.rows.size()) complain("results are missing");
    if (!call.started) complain("a call was answered without having run");
    ++happened_["answer"];
    return;
  } catch (...) {
    error = std::current_exception();
  }
  const ErrorCode code = code_of(error);
  ++happened_["error " + std::string(to_string(code))];
  switch (code) {
    case ErrorCode::remote_error: {  // what the handler threw
      if (!call.started) complain("a handler's error for a call that has not run");
      const bool own = std::any_of(call.rows.begin(), call.rows.end(), is_poison);
      const bool alone = options_.isolate == Isolate::halves && plain_;
      if (alone && !own) complain("a good row fails with a poisoned one");
      break;
    }
    case ErrorCode::timed_out:
      if (!call.deadline || call.started) complain("a call has timed out that could not");
      break;
    case ErrorCode::cancelled:
      if (!call.stop.stop_requested() || call.started) complain("a call was cancelled by nobody");
      break;
    case ErrorCode::peer_lost:
      if (!call.caller_died || call.started) complain("a living caller's row was dropped");
      break;
    case ErrorCode::overloaded:
    case ErrorCode::shut_down:
    case ErrorCode::invalid_argument:  // more rows than a batch has by now
      if (call.started) complain("a call that ran is said not to have");
      break;
    default:
      complain("an error that nobody made: " + describe(error));
  }
}

void Schedule::run() {
  const std::size_t events = 20 + below(60);
  for (std::size_t i = 0; i < events; ++i) {
    const double event = std::uniform_real_distribution<>()(random_);
    if (plain_ || event < 0.8) {
      for (std::size_t burst = chance(0.3) ? 1 + below(8) : 1; burst > 0; --burst)
        arrive();
    } else if (event < 0.86) {
      die_or_return();
    } else if (event < 0.90) {
      change_settings();
    } else if (event < 0.94) {
      batcher_->flush();
    } else if (event < 0.97) {
      batcher_->pause();
    } else {
      batcher_->resume();
    }
    loop_->run_for(chance(0.3) ? Duration::zero() : some_time(500));
  }
  if (!chance(0.2)) batcher_->resume();
  std::optional<Future<void>> closed;
  closed.emplace(batcher_->close(chance(0.7) ? BatchClose::drain : BatchClose::fail));
  loop_->run_for(1s);
  if (!closed->ready()) complain("close() is never over");
  for (Call& call : calls_)
    check_end(call);
  const BatchStatistics s = batcher_->statistics();
  if (s.queued + s.held + s.running != 0) complain("something is left behind");
  if (s.rows != s.rejected + s.expired + s.cancelled + s.left + s.dropped + s.answered + s.failed) {
    complain("the statistics do not add up:\n" + to_string(s));
  }
  batcher_.reset();
  if (!handlers_.empty()) complain("the batcher's handlers outlive it");
}

}  // namespace batchrpc::test
