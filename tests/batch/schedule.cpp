#include "batch/schedule.hpp"

#include <algorithm>

// Of what a schedule is made: a batcher of random options, peers, and calls.
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

/// The batcher's node.
class Schedule::ScheduleHost final : public Host {
 public:
  explicit ScheduleHost(Schedule& schedule)
      : schedule_(schedule),
        workers_(schedule.workers_),
        loop_tasks_(schedule.loop_),
        loop_(schedule.loop_),
        exclusive_(schedule.exclusive_ ? schedule.mutex_ : nullptr) {}

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] const std::shared_ptr<Executor>& workers() const noexcept override {
    return workers_;
  }
  [[nodiscard]] const std::shared_ptr<Executor>& loop_tasks() const noexcept override {
    return loop_tasks_;
  }
  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept override { return loop_; }
  [[nodiscard]] Duration dead_after() const noexcept override { return Duration::max(); }
  [[nodiscard]] const std::string& exposed_as() const noexcept override { return no_name_; }
  [[nodiscard]] const std::shared_ptr<AsyncMutex>& exclusive() const noexcept override {
    return exclusive_;
  }
  [[nodiscard]] bool is_live(std::string_view name) const override {
    return name == name_ || any_peer([&](const Peer& peer) { return peer.identity->name == name; });
  }
  [[nodiscard]] bool is_current(const PeerIdentity& identity) const override {
    return any_peer(
        [&](const Peer& peer) { return peer.identity->incarnation == identity.incarnation; });
  }
  [[nodiscard]] bool may_be_peer(std::string_view /*peer*/) const override { return true; }
  std::uint64_t on_change(std::function<void()> handler) override {
    schedule_.handlers_[schedule_.next_handler_] = std::move(handler);
    return schedule_.next_handler_++;
  }
  std::uint64_t on_end(std::function<void()> handler) override {
    return on_change(std::move(handler));
  }
  void forget(std::uint64_t number) override { schedule_.handlers_.erase(number); }
  std::uint64_t on_metrics(BatcherStatistics /*statistics*/) override { return 0; }
  void forget_metrics(std::uint64_t /*number*/, BatcherMetrics /*last*/) override {}

 private:
  template <class Which>
  [[nodiscard]] bool any_peer(const Which& which) const {
    return std::any_of(schedule_.peers_.begin(), schedule_.peers_.end(),
                       [&](const Peer& peer) { return peer.live && which(peer); });
  }

  Schedule& schedule_;
  const std::string name_ = "root";
  const std::string no_name_;
  const std::shared_ptr<Executor> workers_;
  const std::shared_ptr<Executor> loop_tasks_;
  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<AsyncMutex> exclusive_;
};

Schedule::Schedule(std::uint64_t seed, std::ostream* log)
    : random_(seed),
      log_(log),
      loop_(std::make_shared<VirtualLoop>(seed)),
      start_(loop_->now()),
      workers_(loop_),
      plain_(chance(0.25)),
      reduces_(!plain_ && chance(0.3)),
      priorities_(!plain_ && !reduces_ && chance(0.4)),
      exclusive_(!plain_ && chance(0.3)),
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
  const auto here = std::make_shared<ScheduleHost>(*this);
  return {some_options(), [here](std::string_view peer) { return here->is_live(peer); },
          [here](const PeerIdentity& peer) { return here->is_current(peer); },
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
  detail::HostedAccess::exposed_on(*batcher_, std::make_shared<ScheduleHost>(*this));
}

BatchOptions Schedule::some_options() {
  BatchOptions options;
  options.max_size = 1 + below(8);
  if (plain_ || chance(0.5)) options.max_wait = 1us + some_time(2000);
  options.max_queue = options.max_size + below(20);
  if (plain_) return options;
  if (chance(0.3)) options.min_size = 1 + below(options.max_size);
  if (chance(0.3)) {
    options.all_of = {"peer1", "peer2"};
    if (chance(0.3)) options.all_of.emplace_back("root");
    options.max_size = std::max(options.max_size, options.all_of.size());
    options.max_queue = std::max(options.max_queue, options.max_size);
  }
  options.order_by_peer = chance(0.2);
  options.max_overtaking = 1 + below(10);
  options.on_full = chance(0.5) ? OnFull::wait : OnFull::reject;
  held_ = held_ || options.on_full == OnFull::wait;
  if (weights_ > 1) options.max_queue_bytes = 500 + below(4000);
  if (!exclusive_ && !reduces_) options.parallelism = 1 + below(3);
  if (reduces_) return options;
  if (chance(0.3)) {
    for (std::size_t size = 1 + below(3); size <= options.max_size; size += 1 + below(5))
      options.preferred_sizes.push_back(size);
    const std::size_t least = std::max(options.min_size, options.all_of.size());
    if (!options.preferred_sizes.empty() && options.preferred_sizes.back() < least)
      options.preferred_sizes.clear();
  }
  options.isolate = chance(0.5) ? Isolate::bisect : Isolate::none;
  if (chance(0.2)) {
    options.max_wait = {};
    options.min_size = 1;
    options.all_of.clear();
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

// What has held up the loop does not count.
void Schedule::pass(Duration time) {
  loop_->run_for(time);
  for (TimePoint now; now != loop_->now();) {
    now = loop_->now();
    loop_->run_for(Duration::zero());
  }
}

void Schedule::run() {
  note(reduces_ ? "a reducer" : "a handler", exclusive_ ? ", exclusive" : "");
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
