#include <algorithm>
#include <utility>

#include "reliability/host_name.hpp"
#include "reliability/random_program.hpp"

// What the nodes of a random program do.
namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kLongest = 2000;  // ms, of a function

}  // namespace

// That can act now; null: the one that was drawn cannot.
std::shared_ptr<RandomProgram::Life> RandomProgram::some_life() {
  const auto& life = lives_.at(below(lives_.size()));
  return life->node && !life->dead && !life->paused ? life : nullptr;
}

bool RandomProgram::refuses(int host) const {
  return has_limits_.at(static_cast<std::size_t>(host));
}

void RandomProgram::act() {
  const auto from = some_life();
  if (!from) return;
  int to = static_cast<int>(below(static_cast<std::uint64_t>(hosts_)));
  if (to == from->host && !one_in(8)) to = (to + 1) % hosts_;
  static constexpr std::array<const char*, 6> kPlain{"now",   "work",   "fail",
                                                     "later", "locked", "row"};
  const std::uint64_t what = below(20);
  if (what < 9) {
    (void)call_plain(*from, to, kPlain.at(what % kPlain.size()), 0);
  } else if (what < 11) {
    call_large(*from, to);
  } else if (what < 13) {
    relay(*from, to);
  } else if (what < 15) {
    notify(*from, to);
  } else if (what == 15) {
    drop_at_once(*from, to);
  } else if (what == 16 && handles_.size() < 4) {
    create(from, to);
  } else if (what == 17) {
    pass_handle(*from, to);
  } else {
    use_handle();
  }
}

// Of a call that is to be made, which is told of them.
CallOptions RandomProgram::some_options(LedgerCall& call, bool may_retry) {
  CallOptions options;
  switch (below(6)) {
    case 0:
    case 1:
      options.timeout = 1ms + some_time(200ms);
      break;
    case 2:
    case 3:
      options.timeout = 1s + some_time(3s);
      break;
    case 4:
      options.timeout = Duration::max();
      break;
    default:  // the node's
      call.timeout = 10s;
  }
  if (options.timeout != Duration{}) call.timeout = options.timeout;
  if (may_retry && one_in(3)) {
    options.retry = {.attempts = 2 + static_cast<int>(below(3)),
                     .backoff = some_time(200ms),
                     .idempotent = one_in(2)};
    if (options.retry.idempotent) call.most_runs = options.retry.attempts;
  }
  return options;
}

LedgerCall& RandomProgram::enter(const Life& from, int to, const std::string& function,
                                 LedgerCall call) {
  call.from = from.host;
  call.what = function + " " + from.name + ">" + host_name(to);
  return ledger_.make(std::move(call));
}

// Tells the ledger how it ends; some are taken back before.
template <class T>
void RandomProgram::follow(const LedgerCall& call, const Life& from, Future<T> future) {
  const Id id = call.id;
  auto shared = std::make_shared<Future<T>>(std::move(future));
  shared->then([this, id](const Result<T>& result) {
    if constexpr (std::is_same_v<T, Bytes>) {
      const bool right = result && Payload::is_of(id + 1, *result);
      ledger_.ends(
          id, result ? Result<Id>(right ? Ledger::answer_of(id) : 0) : Result<Id>(result.error()));
    } else {
      ledger_.ends(id, result);
    }
  });
  if (!one_in(6)) return;
  const auto life = lives_.at(static_cast<std::size_t>(from.host));
  world_.after(one_in(3) ? Duration::zero() : some_time(500ms), [this, id, life, shared] {
    if (life->dead || life->paused || !life->node) return;
    LedgerCall& cancelled = ledger_.at(id);
    if (cancelled.ended > 0) return;
    cancelled.cancelled = world_.time();
    const bool did = shared->cancel();
    if (did && cancelled.ended == 0) cancelled.is_surely_cancelled = cancelled.most_runs == 1;
    if (!did && cancelled.ended == 0) {
      ledger_.complain("call " + std::to_string(id) + " could not be cancelled, nor had it ended");
    }
  });
}

/// Its future is for who relays: one that calls have been made in.
Future<std::uint64_t> RandomProgram::call_plain(Life& from, int to, const std::string& function,
                                                Id parent) {
  const bool is_row = function == "row";
  const bool is_short = function == "now" || is_row;
  LedgerCall plan{.parent = parent,
                  .may_be_refused = is_row || (!is_short && refuses(to)),
                  .throws = function == "fail"};
  CallOptions options = some_options(plan, !is_row);
  if (is_short || !refuses(to)) plan.quick = 50ms;
  const bool takes_time = function == "later" || function == "locked";
  const auto delay = static_cast<std::uint32_t>(below(one_in(2) ? kLongest : 50));
  if (takes_time) {
    plan.quick = refuses(to) || function == "locked" ? Duration::max()
                                                     : Duration(50ms) + delay * Duration(1ms);
  }
  if (options.retry.attempts > 1 && refuses(to)) plan.quick = Duration::max();
  const LedgerCall& call = enter(from, to, function, std::move(plan));
  const Id id = call.id;
  Future<Id> future = takes_time
                          ? from.node->peer(host_name(to))
                                .with(options)
                                .call<Id(Id, std::uint32_t)>(function, id, delay)
                          : from.node->peer(host_name(to)).with(options).call<Id(Id)>(function, id);
  Promise<Id> promise;
  Future<Id> relayed = promise.get_future();
  future.then([promise = std::move(promise)](const Result<Id>& result) mutable {
    promise.set_result(Result<Id>(result));
  });
  follow(call, from, std::move(future));
  return relayed;
}

void RandomProgram::call_large(Life& from, int to) {
  LedgerCall plan{.may_be_refused = refuses(to)};
  const CallOptions options = some_options(plan, true);
  const LedgerCall& call = enter(from, to, "large", std::move(plan));
  follow(call, from,
         from.node->peer(host_name(to))
             .with(options)
             .call<Bytes(Id, Bytes)>("large", call.id, Payload::make(call.id, some_size())));
}

void RandomProgram::relay(Life& from, int to) {
  LedgerCall plan{.may_be_refused = refuses(to)};
  const CallOptions options = some_options(plan, false);
  const LedgerCall& call = enter(from, to, "relay", std::move(plan));
  const int next =
      (to + 1 + static_cast<int>(below(static_cast<std::uint64_t>(hosts_ - 1)))) % hosts_;
  follow(call, from,
         from.node->peer(host_name(to)).with(options).call<Id(Id, int)>("relay", call.id, next));
}

void RandomProgram::notify(Life& from, int to) {
  const LedgerCall& call = enter(from, to, "notice", {.untold = true});
  try {
    from.node->peer(host_name(to)).notify<Id(Id)>("now", call.id);
  } catch (const Error& error) {
    if (weather_ != Weather::storm)
      ledger_.complain("a notice failed: " + std::string(error.what()));
  }
}

void RandomProgram::drop_at_once(Life& from, int to) {
  const LedgerCall& call = enter(from, to, "dropped", {.untold = true, .arrives = false});
  (void)from.node->peer(host_name(to))
      .with({.cancel_when_dropped = true})
      .call<Id(Id)>("work", call.id);
}

void RandomProgram::create(const std::shared_ptr<Life>& from, int to) {
  const Id number = next_handle_++;
  handles_.push_back(
      {from->node->create<reliability::Diary(std::uint64_t)>(host_name(to), number), from, number});
}

void RandomProgram::use_handle() {
  if (handles_.empty()) return;
  const std::size_t index = below(handles_.size());
  Handle& handle = handles_[index];
  if (handle.by->dead || handle.by->paused) return;
  if (one_in(6)) {
    handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  const int to = handle.object.owner().at(1) - '0';
  for (std::uint64_t calls = 1 + below(3); calls > 0; --calls) {
    // The owner's own handles are released past the calls that are on their way.
    LedgerCall plan{.may_be_refused = refuses(to), .may_be_late = to == handle.by->host};
    const CallOptions options = some_options(plan, false);
    const LedgerCall& call = enter(*handle.by, to, "note", std::move(plan));
    const Bytes payload = Payload::make(call.id, one_in(4) ? some_size() : 0);
    follow(call, *handle.by,
           handle.object.with(options).call<&reliability::Diary::note>(call.id, handle.number,
                                                                       ++handle.calls, payload));
  }
}

void RandomProgram::pass_handle(Life& from, int to) {
  const auto own = std::find_if(handles_.begin(), handles_.end(),
                                [&](const Handle& handle) { return handle.by.get() == &from; });
  if (own == handles_.end() || refuses(to)) return;
  const LedgerCall& call = enter(from, to, "hold", {});
  from.node->peer(host_name(to))
      .with({.timeout = Duration::max()})
      .call<Id(Id, RRef<reliability::Diary>)>("hold", call.id, own->object)
      .then([this, id = call.id](const Result<Id>& result) { ledger_.ends(id, result); });
}

}  // namespace batchrpc::test
