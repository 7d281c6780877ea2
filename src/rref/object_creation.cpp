#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/local_node.hpp"
#include "rref/object_table.hpp"
#include "transport/end_in_turns.hpp"
#include "wire/frame.hpp"

// The creation of objects, and calls of objects whose creation has not arrived yet (R8).
namespace batchrpc::detail {
namespace {

// How long calls wait for their object's creation, which may come over another connection.
constexpr auto kExpectFor = std::chrono::seconds(10);

}  // namespace

// The error for methods of an object whose maker threw `thrown`.
std::exception_ptr ObjectTable::making_error(std::string_view maker,
                                             const std::exception_ptr& thrown) const {
  try {
    std::rethrow_exception(thrown);
  } catch (const RemoteError& nested) {  // keeps the original exception
    return std::make_exception_ptr(
        RemoteError(nested.what(), nested.type(), node_.name(), maker, false));
  } catch (const Error& known) {  // unchanged, like a method's error
    const std::string before = std::string(maker) + " on " + node_.name() + ": ";
    if (!wire::is_of_one_call(known.code())) return copy_error(known, false, {.before = before});
  } catch (...) {  // handled below
  }
  return std::make_exception_ptr(
      RemoteError(describe(thrown), type_name(thrown), node_.name(), maker, false));
}

// Returns why an unknown object will never exist; null if it may still come. If this node is its
// creator, it is known before any other node can name it. The caller must hold the lock.
std::exception_ptr ObjectTable::why_unknown(const ObjectId& object) const {
  if (closed_) return node_.refusal();
  if (object.owner != node_.incarnation()) return restarted_error();  // (R7)
  const bool may_come = object.creator != node_.incarnation() && !gone_.contains(object);
  return may_come ? nullptr : gone_error(object);
}

// Returns the object's entry. An object not heard of before is awaited, up to a limit (R8). Null,
// with the reason in `why`, if it is not. The caller must hold the lock.
ObjectTable::Entry* ObjectTable::entry(const ObjectId& object, std::uint64_t peer,
                                       std::exception_ptr& why) {
  const auto at = entries_.find(object);
  if (at != entries_.end()) return &at->second;
  why = why_unknown(object);
  if (why) return nullptr;
  const auto of_peer = awaited_of_.find(peer);
  if (awaited_ >= kMostAwaited ||
      (of_peer != awaited_of_.end() && of_peer->second >= kMostAwaitedOfOne)) {
    why = std::make_exception_ptr(Overloaded(
        node_.name() +
        " does not know the object behind this RRef yet, and already waits for the creation of " +
        std::to_string(awaited_) + " others (the limits: " + std::to_string(kMostAwaited) +
        ", and " + std::to_string(kMostAwaitedOfOne) + " that one node names); call again later"));
  }
  return why ? nullptr : &await(object, peer);
}

std::uint64_t ObjectTable::caller_here() noexcept {
  const CallContext* const context = CallContext::current();
  return context != nullptr ? context->caller().incarnation : 0;
}

// The caller must hold the lock.
ObjectTable::Entry& ObjectTable::await(const ObjectId& object, std::uint64_t peer) {
  Entry& expected = entries_[object];
  expected.awaited_for = peer;
  ++awaited_;
  if (peer != 0) ++awaited_of_[peer];
  wait_for_creation(object, expected);
  return expected;
}

// The caller must hold the lock.
void ObjectTable::no_longer_awaited(const Entry& entry) {
  --awaited_;
  const auto of_peer = awaited_of_.find(entry.awaited_for);
  if (of_peer != awaited_of_.end() && --of_peer->second == 0) awaited_of_.erase(of_peer);
}

// The caller must hold the lock.
void ObjectTable::wait_for_creation(const ObjectId& object, Entry& expected) {
  expected.in_line().timer =
      node_.loop()->schedule(node_.loop()->now() + kExpectFor, [weak = weak_from_this(), object] {
        if (const auto self = weak.lock()) self->give_up_on(object);
      });
}

void ObjectTable::give_up_on(const ObjectId& object) {
  std::exception_ptr why;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end() || !at->second.line) return;
    why = at->second.line->listed
              ? expired_error()
              : std::make_exception_ptr(NotFound("there is no such object on " + node_.name() +
                                                 ": its creation never arrived"));
  }
  abandon(no_object(object, why));
}

struct ObjectTable::Coming {
  Coming(std::weak_ptr<ObjectTable> objects, const ObjectId& id)
      : table(std::move(objects)), object(id) {}
  Coming(const Coming&) = delete;
  Coming& operator=(const Coming&) = delete;
  ~Coming() {
    const auto objects = table.lock();
    if (!objects) return;
    const std::lock_guard lock(objects->mutex_);
    const auto at = objects->entries_.find(object);
    if (at == objects->entries_.end() || !at->second.line) return;
    if (--at->second.line->coming == 0 && at->second.type == nullptr) {
      objects->wait_for_creation(object, at->second);  // it may come over another connection
    }
  }

  const std::weak_ptr<ObjectTable> table;
  const ObjectId object;
};

std::shared_ptr<void> ObjectTable::expect(const ObjectId& object) {
  const std::lock_guard lock(mutex_);
  std::exception_ptr why;
  Entry* const expected = entry(object, caller_here(), why);
  if (expected == nullptr || expected->type != nullptr) return nullptr;
  ++expected->in_line().coming;
  node_.loop()->cancel(std::exchange(expected->line->timer, 0));
  return std::make_shared<Coming>(weak_from_this(), object);
}

void ObjectTable::create(const ObjectId& object, const PeerIdentity& user, const ObjectClass& type,
                         std::string_view maker, MakeObject make_it,
                         UniqueFunction<void(Result<void>)> done) {
  if (object.creator != user.incarnation) {
    throw InvalidArgument("an object's id must name the node that creates it");
  }
  const std::lock_guard lock(mutex_);
  auto at = entries_.find(object);
  if (at == entries_.end()) {
    if (auto why = why_unknown(object)) throw DidNotRun{std::move(why)};
    at = entries_.try_emplace(object).first;
  } else if (at->second.type != nullptr) {
    throw InvalidArgument("an object with this id already exists");
  } else {
    no_longer_awaited(at->second);
    node_.loop()->cancel(std::exchange(at->second.in_line().timer, 0));
  }
  Entry& created = at->second;
  created.type = &type_of(type);
  Line& line = created.in_line();
  if (user.incarnation != node_.incarnation()) {
    hold(created, holders_.at(user), node_.loop()->coarse_now());
  }
  line.jobs[0].run = [this, object, maker, make_it = std::move(make_it),
                      done = std::move(done)](const Result<std::shared_ptr<void>>& turn) mutable {
    make(object, maker, std::move(make_it), std::move(done), turn);
  };
  start(object, created);
}

// Makes the object, which holds its line until then.
void ObjectTable::make(const ObjectId& object, std::string_view maker, MakeObject make_it,
                       UniqueFunction<void(Result<void>)> done,
                       const Result<std::shared_ptr<void>>& turn) {
  if (!turn) {
    done(std::make_exception_ptr(DidNotRun{turn.error()}));
    return;
  }
  Future<std::shared_ptr<void>> value;
  try {
    value = make_it();
  } catch (...) {
    value = make_failed_future<std::shared_ptr<void>>(std::current_exception());
  }
  std::move(value).then([weak = weak_from_this(), object, maker,
                         done = std::move(done)](Result<std::shared_ptr<void>> result) mutable {
    if (const auto self = weak.lock())
      self->made(object, maker, std::move(result), std::move(done));
  });
}

void ObjectTable::made(const ObjectId& object, std::string_view maker,
                       Result<std::shared_ptr<void>> value,
                       UniqueFunction<void(Result<void>)> done) {
  if (value && !value.value()) {
    value = std::make_exception_ptr(InvalidArgument("it returned no object (a null pointer)"));
  }
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at != entries_.end()) {  // the node has not ended
      if (value) {
        at->second.value = std::move(value).value();
      } else {
        const std::exception_ptr missing = why_not_run(value.error());
        const std::exception_ptr failed = missing ? missing : making_error(maker, value.error());
        at->second.failed = failed;
        const bool as_thrown = missing || code_of(failed) == ErrorCode::remote_error;
        error = as_thrown ? value.error() : failed;
      }
      turn_over(at);
    } else if (!value) {
      error = value.error();
    }
  }
  done(error ? Result<void>(error) : Result<void>());
}

void ObjectTable::own(const ObjectId& object, const ObjectClass& type,
                      const std::shared_ptr<void>& value) {
  const std::lock_guard lock(mutex_);
  if (closed_) std::rethrow_exception(closed_error());
  Entry& owned = entries_[object];
  owned.type = &type_of(type);
  owned.value = value;
  owned.held_here = true;
}

void ObjectTable::abandon(const NoObject& none) {
  const ObjectId& object = none.object;
  const std::exception_ptr why = error_of(none, node_.name());
  Entry abandoned;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end()) {  // it will not come: if its creation is only late, it is refused
      if (!closed_) remember_gone(object, Gone::never_made);
      return;
    }
    if (at->second.type != nullptr) return;
    if (at->second.line) node_.loop()->cancel(at->second.line->timer);
    for (const Hold& hold : at->second.holds)
      outbox_.add(hold.holder->name, none);
    abandoned = std::move(at->second);
    for (const Hold& hold : abandoned.holds)
      --hold.holder->objects;
    entries_.erase(at);
    no_longer_awaited(abandoned);
    remember_gone(object,
                  code_of(why) == ErrorCode::rref_expired ? Gone::released : Gone::never_made);
  }
  if (abandoned.line) fail_some(std::move(abandoned.line->jobs), why);
}

void ObjectTable::fail_some(Jobs jobs, const std::exception_ptr& why) {
  end_in_turns(*node_.loop(), [jobs = std::move(jobs), why]() mutable {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce && !jobs.empty(); ++i)
      jobs.extract(jobs.begin()).mapped().run(why);
    return jobs.empty();
  });
}

}  // namespace batchrpc::detail
