#include "soak/load.hpp"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string_view>

#include "soak/pattern.hpp"

namespace soak {

namespace {

using namespace std::chrono_literals;
using batchrpc::Bytes;
using batchrpc::CallOptions;
using batchrpc::ErrorCode;
using batchrpc::RRef;

constexpr auto kTimeout = 20s;
constexpr auto kStuckAfter = kTimeout + 20s;  // this process may be stopped in between
constexpr auto kAfterError = 100ms;
constexpr int kAgentSlots = 2;  // for each observer
constexpr int kObserverSlots = 4;

CallOptions usual() { return {.timeout = kTimeout}; }

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

// The error code of a call; if a handler failed because of its own call, the code of that one.
ErrorCode code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const batchrpc::RemoteError& remote) {
    constexpr std::string_view kPrefix = "batchrpc::";
    const std::string_view type = remote.type();
    for (std::uint16_t number = 1; number <= 14 && type.starts_with(kPrefix); ++number) {
      const auto code = static_cast<ErrorCode>(number);
      if (type.substr(kPrefix.size()) == to_string(code)) return code;
    }
    return ErrorCode::remote_error;
  } catch (...) {
    return batchrpc::code_of(error);
  }
}

}  // namespace

Load::Load(const batchrpc::Node& node, const Options& options, Report& report)
    : node_(node),
      options_(options),
      is_agent_(options.role == Role::agent),
      report_(report),
      random_(options.seed * 1'000'003 + options.index * 1009 + options.life),
      numbers_(kObservers + 1) {
  const auto add = [this](const std::string& peer, int count) {
    for (int i = 0; i < count; ++i)
      slots_.emplace_back().peer = peer;
  };
  if (options.role == Role::root) return;
  add("root", 1);
  if (!is_agent_) add("agent", kObserverSlots);
  for (std::uint32_t i = 0; is_agent_ && i < kObservers; ++i)
    add(name_of(Role::observer, i), kAgentSlots);
}

bool Load::is_idle() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.call == 0; });
}

void Load::tick() {
  const Clock::time_point now = Clock::now();
  for (Slot& slot : slots_) {
    if (slot.call == 0) {
      slot.to_cancel = {};
      if (!paused_ && nanoseconds(now) >= slot.not_before) start(slot);
      continue;
    }
    if (slot.to_cancel.valid() && now >= slot.cancel_at) {
      slot.to_cancel.cancel();
      slot.to_cancel = {};
    } else if (now - slot.started > kStuckAfter && !slot.stuck) {
      slot.stuck = true;
      report_.failed(std::string("a future was not completed: ") + slot.what + " on " + slot.peer);
    }
  }
}

void Load::start(Slot& slot) {
  slot.stuck = slot.may_be_cancelled = slot.may_time_out = false;
  slot.with_handle = slot.involves_others = false;
  if (slot.peer == "root") {
    slot.not_before = nanoseconds(Clock::now() + 250ms);
    return start_square(slot);
  }
  const std::uint64_t kind = random(16);
  if (kind < 6) return start_echo(slot);
  if (kind < 8) return start_linger(slot);
  if (kind == 8) return start_square(slot);
  if (kind == 9) return notify(slot);
  if (kind == 10) return start_object(slot);
  if (kind == 11) return start_passing_on(slot);
  if (is_agent_) return start_echo(slot);
  start_batch(slot);
}

CallId Load::new_id(const Slot& slot) {
  std::size_t to = kObservers;
  for (std::uint32_t i = 0; is_agent_ && i < kObservers; ++i) {
    if (slot.peer == name_of(Role::observer, i)) to = i;
  }
  return {.caller = is_agent_ ? kObservers : options_.index,
          .life = options_.life,
          .number = ++numbers_[to]};
}

void Load::begin(Slot& slot, const char* what) {
  slot.what = what;
  slot.started = Clock::now();
  slot.call = ++next_;
}

template <class T, class Right>
void Load::watch(Slot& slot, const batchrpc::Future<T>& future, Right right) {
  future.then([this, &slot, call = slot.call.load(),
               right = std::move(right)](const batchrpc::Result<T>& result) {
    end(slot, call, result.error(), !result || right(*result));
  });
}

void Load::end(Slot& slot, std::uint64_t call, const std::exception_ptr& error, bool right) {
  if (slot.call != call) {
    report_.failed("a future was completed twice, or much too late: " + std::string(slot.what) +
                   " on " + slot.peer);
    return;
  }
  if (!right) report_.failed(std::string(slot.what) + " on " + slot.peer + ": a wrong result");
  if (error) report_error(slot, error);
  if (error) slot.not_before = nanoseconds(Clock::now() + kAfterError);
  ++ended_;
  slot.call = 0;
}

void Load::report_error(const Slot& slot, const std::exception_ptr& error) {
  const ErrorCode code = code_of(error);
  if (code == ErrorCode::cancelled && slot.may_be_cancelled) return;
  if (code == ErrorCode::timed_out && slot.may_time_out) return;
  std::ostringstream line;
  line << "error " << static_cast<int>(code) << ' ' << nanoseconds(Clock::now()) << ' '
       << slot.with_handle << ' ' << slot.involves_others << ' ' << slot.peer << ' ' << slot.what
       << " after "
       << std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - slot.started).count()
       << " ms: " << batchrpc::explain(error);
  report_.add(line.str());
}

void Load::start_echo(Slot& slot) {
  const auto size = [this] {
    const std::uint64_t kind = random(256);
    return kind == 0 ? random(2 << 20) : kind < 16 ? random(100'000) : random(1500);
  };
  const EchoRequest request{.at = random(kPatternSize / 2),
                            .size = size(),
                            .reply_at = random(kPatternSize / 2),
                            .reply_size = size()};
  CallOptions options = usual();
  if (random(4) == 0) options.retry = {.attempts = 3};  // repeats only calls that surely never ran
  begin(slot, "echo");
  watch(slot,
        node_.peer(slot.peer).with(options).call<Bytes(CallId, EchoRequest, Bytes)>(
            "echo", new_id(slot), request, part_of_pattern(request.at, request.size)),
        [request](const Bytes& reply) {
          return is_part_of_pattern(reply, request.reply_at, request.reply_size);
        });
}

void Load::start_linger(Slot& slot) {
  const CallId id = new_id(slot);
  CallOptions options = usual();
  const std::uint64_t kind = random(4);
  begin(slot, "linger");
  if (kind == 0) {
    options.timeout = std::chrono::milliseconds(1 + random(20));
    slot.may_time_out = true;
  } else if (kind == 1) {
    options.cancel_when_dropped = true;
  }
  auto future = node_.peer(slot.peer).with(options).call<std::uint64_t(CallId)>("linger", id);
  if (kind == 1) {  // its end is not observed
    slot.call = 0;
    return;
  }
  if (kind == 2) {
    slot.may_be_cancelled = true;
    slot.cancel_at = Clock::now() + std::chrono::milliseconds(random(30));
  }
  watch(slot, future, [id](std::uint64_t number) { return number == id.number; });
  if (kind == 2) slot.to_cancel = std::move(future);
}

void Load::start_batch(Slot& slot) {
  Row row(4 + random(60));
  for (float& x : row)
    x = static_cast<float>(random(1000));
  begin(slot, "act");
  watch(slot, node_.peer(slot.peer).with(usual()).call<Row(CallId, Row)>("act", new_id(slot), row),
        [row](const Row& result) {
          return std::equal(row.begin(), row.end(), result.begin(), result.end(),
                            [](float x, float y) { return 2 * x + 1 == y; });
        });
}

void Load::start_square(Slot& slot) {
  const auto x = static_cast<double>(random(1000));
  CallOptions options = usual();
  options.retry = {.attempts = 4, .idempotent = true};
  begin(slot, "square");
  watch(slot, node_.peer(slot.peer).with(options).call<double(double)>("square", x),
        [x](double result) { return result == x * x; });
}

void Load::notify(Slot& slot) {
  begin(slot, "tell");
  try {
    node_.peer(slot.peer).notify<void(CallId)>("tell", new_id(slot));
  } catch (const batchrpc::Error&) {
    report_error(slot, std::current_exception());
  }
  ++ended_;
  slot.call = 0;
}

void Load::start_object(Slot& slot) {
  slot.with_handle = true;
  begin(slot, "an object");
  const auto tally = node_.create<Tally(int)>(slot.peer, 100);
  std::vector<batchrpc::Future<int>> sums;
  for (int i = 1; i <= 3; ++i)
    sums.push_back(tally.with(usual()).call<&Tally::add>(i));
  watch(slot, batchrpc::when_all(std::move(sums)), [](const std::vector<int>& results) {
    return results == std::vector<int>{101, 103, 106};
  });
}

void Load::start_passing_on(Slot& slot) {
  const auto tally = node_.own(std::make_shared<Tally>(41));
  slot.with_handle = slot.involves_others = true;
  begin(slot, "passing on");
  const auto right = [](int sum) { return sum == 42; };
  if (is_agent_) {
    watch(slot, node_.peer(slot.peer).with(usual()).call<int(RRef<Tally>)>("use", tally), right);
  } else {
    const auto other = static_cast<std::uint32_t>(random(kObservers));
    watch(slot,
          node_.peer(slot.peer).with(usual()).call<int(RRef<Tally>, std::string)>(
              "pass on", tally, name_of(Role::observer, other)),
          right);
  }
}

}  // namespace soak
