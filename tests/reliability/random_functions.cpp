#include <stdexcept>
#include <utility>

#include "reliability/random_program.hpp"

// What the nodes of a random program answer.

std::uint64_t reliability::Diary::note(std::uint64_t id, std::uint64_t handle, std::uint64_t number,
                                       const batchrpc::Bytes& payload) {
  ledger->starts(id);
  ledger->starts_in_order(handle, number);
  if (!batchrpc::test::Payload::is_of(id, payload)) ledger->complain("a damaged payload");
  return batchrpc::test::Ledger::answer_of(id);
}

namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

}  // namespace

/// The answer comes so much later. Who has given the call up has told so meanwhile.
Future<std::uint64_t> RandomProgram::promise(Life& life, Id id, Duration delay) {
  Promise<Id> promise;
  Future<Id> future = promise.get_future();
  if (!life.promised.emplace(id, std::move(promise)).second) {
    return make_ready_future(Ledger::answer_of(id));  // a further attempt
  }
  const CallContext context = *CallContext::current();
  life.loop->schedule(life.loop->now() + delay, [this, &life, id, context] {
    const LedgerCall& call = ledger_.at(id);
    const Duration slack = ledger_.slack();
    if (call.most_runs == 1 && call.over && slack != Duration::max() &&
        world_.time() > *call.over + slack && !context.cancelled()) {
      ledger_.complain("call " + std::to_string(id) + ", " + call.what +
                       ", was over long ago, and its function was not told");
    }
    auto promised = life.promised.extract(id);
    if (promised) promised.mapped().set_value(Ledger::answer_of(id));
  });
  return future;
}

void RandomProgram::expose_all(Life& life) {
  const Node& node = *life.node;
  const ExposeOptions at_once{.short_handler = true};
  const auto answer = [this](Id id) {
    ledger_.starts(id);
    return Ledger::answer_of(id);
  };
  const auto later = [this, &life](Id id, std::uint32_t delay) {
    ledger_.starts(id);
    return promise(life, id, std::chrono::milliseconds(delay));
  };
  node.expose(
      "probe", [](int x) { return 2 * x; }, at_once);
  node.expose("now", answer, at_once);
  node.expose("work", answer);
  node.expose("fail", [this](Id id) -> Id {
    ledger_.starts(id);
    throw std::runtime_error("as it should");
  });
  node.expose("later", later);
  node.expose("locked", later, {.exclusive = std::make_shared<AsyncMutex>()});
  node.expose("large", [this](Id id, const Bytes& payload) {
    ledger_.starts(id);
    if (!Payload::is_of(id, payload)) ledger_.complain("a damaged payload");
    return Payload::make(id + 1, payload.size());
  });
  node.expose("relay", [this, &life](Id id, int to) {
    ledger_.starts(id);
    static constexpr std::array<const char*, 3> kInner{"now", "work", "later"};
    return call_plain(life, to, kInner.at(below(kInner.size())), id).then([id](const Result<Id>&) {
      return Ledger::answer_of(id);
    });
  });
  node.expose("hold", [this, &life](Id id, RRef<reliability::Diary> handle) {
    ledger_.starts(id);
    life.held.push_back(std::move(handle));
    if (life.held.size() > 2) life.held.erase(life.held.begin());
    return Ledger::answer_of(id);
  });
  const Batcher<Id(Id)> rows({.max_size = 1 + below(6),
                              .max_wait = one_in(2) ? Duration::zero() : some_time(20ms),
                              .max_queue = 8,
                              .on_full = one_in(2) ? OnFull::wait : OnFull::reject},
                             [this](std::vector<Id> ids) {
                               for (Id& id : ids) {
                                 ledger_.starts(id);
                                 id = Ledger::answer_of(id);
                               }
                               return ids;
                             });
  node.expose("row", rows);
  node.expose_class<reliability::Diary(std::uint64_t)>();
  node.expose<&reliability::Diary::note>();
}

}  // namespace batchrpc::test
