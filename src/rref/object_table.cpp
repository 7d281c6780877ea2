#include "rref/object_table.hpp"

#include <iterator>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "node/node_core.hpp"
#include "rref/rref_parts.hpp"
#include "wire/frame.hpp"

// The objects and their calls; by whom they are held is in object_holds.cpp.
namespace batchrpc::detail {
namespace {

// How long calls wait for the creation of their object, which may come over another connection.
constexpr auto kExpectFor = std::chrono::seconds(10);
constexpr std::size_t kGoneKept = 65536;

// Why what was to make an object never ran: there is none of the object that was to make it. Null
// where it did run.
std::exception_ptr why_not_run(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DidNotRun& missing) {
    return missing.error;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

// What methods of an object fail with when what was to make it threw `thrown`.
std::exception_ptr ObjectTable::making_error(std::string_view maker,
                                             const std::exception_ptr& thrown) const {
  try {
    std::rethrow_exception(thrown);
  } catch (const RemoteError& nested) {  // what was thrown at first
    return std::make_exception_ptr(
        RemoteError(nested.what(), nested.type(), core_.name(), maker, false));
  } catch (const Error& known) {  // as it is, as one of a method
    const std::string before = std::string(maker) + " on " + core_.name() + ": ";
    if (!wire::is_of_one_call(known.code())) return copy_error(known, false, {.before = before});
  } catch (...) {  // below
  }
  return std::make_exception_ptr(
      RemoteError(describe(thrown), type_name(thrown), core_.name(), maker, false));
}

// Under the lock.
std::exception_ptr ObjectTable::gone_error(const ObjectId& object) const {
  const auto at = gone_.find(object);
  if (at == gone_.end() || at->second == Gone::released) return expired_error();
  return std::make_exception_ptr(NotFound("there is no such object on " + core_.name() +
                                          ": its creation never came, or failed"));
}

std::exception_ptr ObjectTable::expired_error() const {
  return std::make_exception_ptr(RRefExpired(
      "the object behind this RRef is gone from " + core_.name() +
      ", which had not heard of its holders for too long (NodeOptions::rref_lease); create "
      "another"));
}

std::exception_ptr ObjectTable::restarted_error() const {
  return std::make_exception_ptr(OwnerLost("the object behind this RRef is gone: " + core_.name() +
                                           " was restarted since; create another"));
}

// For this process itself; others are told core_.refusal().
std::exception_ptr ObjectTable::closed_error() const {
  return std::make_exception_ptr(
      ShutDown("node " + core_.name() + " is shut down; make a new one"));
}

ObjectTable::ObjectTable(NodeCore& core, Outbox& outbox) : core_(core), outbox_(outbox) {}

ObjectTable::~ObjectTable() = default;

// --- types

// Under the lock.
ObjectTable::Type& ObjectTable::type_of(std::string_view name) {
  const auto at = types_.find(name);
  if (at != types_.end()) return at->second;
  return types_.try_emplace(std::string(name), Type{.name = std::string(name), .bases = {}})
      .first->second;
}

void ObjectTable::allow_as(std::string_view type, std::string_view base, Upcast cast) {
  const std::lock_guard lock(mutex_);
  type_of(type).bases.insert_or_assign(std::string(base), cast);
}

// Under the lock.
Result<std::shared_ptr<void>> ObjectTable::value_as(const Entry& known,
                                                    std::string_view type) const {
  if (known.failed) return known.failed;
  if (!known.value || type.empty() || type == known.type->name) return known.value;
  const auto base = known.type->bases.find(type);
  if (base != known.type->bases.end()) return base->second(known.value);
  return std::make_exception_ptr(
      InvalidArgument("the object behind this RRef is a " + known.type->name +
                      ", it was called as a " + std::string(type) +
                      "; give both sides one type, or name the base class where the class is "
                      "exposed (expose_class<Derived(...), Base>)"));
}

std::shared_ptr<void> ObjectTable::find(const ObjectId& object, std::string_view type) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(object);
  if (at == entries_.end()) std::rethrow_exception(closed_ ? closed_error() : gone_error(object));
  return value_as(at->second, type).value();
}

// --- creation

// Under the lock. Why an object that is not known will not be; null: it may come yet. It is known
// before anybody can speak of it where this node is its creator.
std::exception_ptr ObjectTable::why_unknown(const ObjectId& object) const {
  if (closed_) return core_.refusal();
  if (object.owner != core_.incarnation()) return restarted_error();  // R7
  const bool may_come = object.creator != core_.incarnation() && !gone_.contains(object);
  return may_come ? nullptr : gone_error(object);
}

// Under the lock. An object that was not heard of before is awaited, but for no more than so many
// (R8). Null: not this one, and why.
ObjectTable::Entry* ObjectTable::entry(const ObjectId& object, std::exception_ptr& why) {
  const auto at = entries_.find(object);
  if (at != entries_.end()) return &at->second;
  why = why_unknown(object);
  if (!why && awaited_ >= kMostAwaited) {
    why = std::make_exception_ptr(
        Overloaded(core_.name() + " has not heard of the object behind this RRef, and waits for " +
                   std::to_string(awaited_) + " others already; call again"));
  }
  return why ? nullptr : &await(object);
}

// Under the lock.
ObjectTable::Entry& ObjectTable::await(const ObjectId& object) {
  Entry& expected = entries_[object];
  ++awaited_;
  wait_for_creation(object, expected);
  return expected;
}

// Under the lock.
void ObjectTable::wait_for_creation(const ObjectId& object, Entry& expected) {
  expected.in_line().timer =
      core_.loop()->schedule(core_.loop()->now() + kExpectFor, [weak = weak_from_this(), object] {
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
              : std::make_exception_ptr(NotFound("there is no such object on " + core_.name() +
                                                 ": its creation never came"));
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
      objects->wait_for_creation(object, at->second);  // maybe over another connection
    }
  }

  const std::weak_ptr<ObjectTable> table;
  const ObjectId object;
};

std::shared_ptr<void> ObjectTable::expect(const ObjectId& object) {
  const std::lock_guard lock(mutex_);
  std::exception_ptr why;
  Entry* const expected = entry(object, why);
  if (expected == nullptr || expected->type != nullptr) return nullptr;
  ++expected->in_line().coming;
  core_.loop()->cancel(std::exchange(expected->line->timer, 0));
  return std::make_shared<Coming>(weak_from_this(), object);
}

void ObjectTable::create(const ObjectId& object, const PeerIdentity& user, std::string_view type,
                         std::string_view maker, MakeObject make_it,
                         UniqueFunction<void(Result<void>)> done) {
  if (object.creator != user.incarnation) {
    throw InvalidArgument("an object is named by the node that creates it");
  }
  const std::lock_guard lock(mutex_);
  auto at = entries_.find(object);
  if (at == entries_.end()) {
    if (auto why = why_unknown(object)) throw DidNotRun{std::move(why)};
    at = entries_.try_emplace(object).first;
  } else if (at->second.type != nullptr) {
    throw InvalidArgument("an object of this id exists already");
  } else {
    --awaited_;
    core_.loop()->cancel(std::exchange(at->second.in_line().timer, 0));
  }
  Entry& created = at->second;
  created.type = &type_of(type);
  Line& line = created.in_line();
  if (user.incarnation != core_.incarnation()) {
    hold(created, holders_.at(user), core_.loop()->coarse_now());
  }
  line.jobs[0].run = [this, object, maker, make_it = std::move(make_it),
                      done = std::move(done)](const Result<std::shared_ptr<void>>& turn) mutable {
    make(object, maker, std::move(make_it), std::move(done), turn);
  };
  start(object, created);
}

// The object is in line until it is made.
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
    value = std::make_exception_ptr(InvalidArgument("it returned no object"));
  }
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at != entries_.end()) {  // the node has not ended meanwhile
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

void ObjectTable::own(const ObjectId& object, std::string_view type,
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
  const std::exception_ptr why = error_of(none, core_.name());
  Entry abandoned;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end()) {  // nor will it be: the creation may come late
      if (!closed_) remember_gone(object, Gone::never_made);
      return;
    }
    if (at->second.type != nullptr) return;
    if (at->second.line) core_.loop()->cancel(at->second.line->timer);
    for (const Hold& hold : at->second.holds)
      outbox_.add(hold.holder->name, none);
    abandoned = std::move(at->second);
    for (const Hold& hold : abandoned.holds)
      --hold.holder->objects;
    entries_.erase(at);
    --awaited_;
    remember_gone(object,
                  code_of(why) == ErrorCode::rref_expired ? Gone::released : Gone::never_made);
  }
  if (!abandoned.line) return;
  for (auto& [number, job] : abandoned.line->jobs)
    job.run(why);
}

// --- calls

void ObjectTable::run(const ObjectId& object, std::string_view type, ObjectJob job,
                      const std::shared_ptr<CallState>& call) {
  Key key{object, 0};
  bool cancelled = false;
  std::exception_ptr why;
  {
    const std::lock_guard lock(mutex_);
    if (Entry* const known = entry(object, why)) {
      Line& line = known->in_line();
      key.second = line.next_job++;
      Job& waiting = line.jobs[key.second];
      waiting.type = type;
      waiting.run = std::move(job);
      if (call) {
        waiting.call = call;
        call->set_in_line(true);
        cancelled = !waiting.hook.emplace(weak_from_this(), key).attach(call);
      }
      if (known->type != nullptr) start(object, *known);
    }
  }
  if (why) job(std::move(why));
  if (cancelled) drop(key);
}

// A job whose call was cancelled.
void ObjectTable::drop(const Key& job) {
  Jobs::node_type dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(job.first);
  if (at != entries_.end() && at->second.line) dropped = at->second.line->jobs.extract(job.second);
}

// Under the lock.
void ObjectTable::start(const ObjectId& object, Entry& known) {
  if (known.line->busy || known.line->jobs.empty()) return;
  known.line->busy = true;
  core_.run_on_worker([weak = weak_from_this(), object] {
    if (const auto self = weak.lock()) self->run_next(object);
  });
}

void ObjectTable::run_next(const ObjectId& object) {
  Jobs::node_type job;
  Result<std::shared_ptr<void>> value = std::shared_ptr<void>();
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end()) return;  // the node has ended
    auto& jobs = at->second.line->jobs;
    if (!jobs.empty()) {  // else the calls were cancelled meanwhile
      job = jobs.extract(jobs.begin());
      if (job.key() != 0) value = value_as(at->second, job.mapped().type);
    }
  }
  const bool makes = job && job.key() == 0;
  if (job) {
    job.mapped().hook.reset();
    if (job.mapped().call) job.mapped().call->set_in_line(false);
    job.mapped().run(std::move(value));
    job = {};
  }
  if (makes) return;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(object);
  if (at != entries_.end()) turn_over(at);
}

// Under the lock. What ran on the object has returned, or the object is there.
void ObjectTable::turn_over(Entries::iterator at) {
  at->second.line->busy = false;
  start(at->first, at->second);
  if (!at->second.line->busy) at->second.line.reset();
  drop_if_unused(at);
}

// --- the end of an object

// Under the lock.
void ObjectTable::drop_if_unused(Entries::iterator at) {
  const Entry& known = at->second;
  const bool used = known.type == nullptr || known.line || known.held_here || !known.holds.empty();
  if (used) return;
  if (at->second.value) {  // its destructor is the user's code
    unused_.push_back(std::move(at->second.value));
    if (unused_.size() == 1) {
      core_.run_on_worker([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->destroy_unused();
      });
    }
  }
  const ObjectId object = at->first;
  entries_.erase(at);
  remember_gone(object, Gone::released);
}

void ObjectTable::destroy_unused() {
  std::vector<std::shared_ptr<void>> unused;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  unused.swap(unused_);
}

void ObjectTable::remember_gone(const ObjectId& object, Gone how) {
  if (!gone_.emplace(object, how).second) return;
  gone_order_.push_back(object);
  if (gone_order_.size() > kGoneKept) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
}

void ObjectTable::close() {
  Entries all;  // destroyed without the lock: destructors are the user's code
  std::vector<std::shared_ptr<void>> unused;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    all.swap(entries_);
    awaited_ = 0;
    unused.swap(unused_);
  }
  // In order, whatever the hash.
  std::map<ObjectId, Entry> ended(std::make_move_iterator(all.begin()),
                                  std::make_move_iterator(all.end()));
  all.clear();
  for (auto& [object, entry] : ended) {
    if (!entry.line) continue;
    core_.loop()->cancel(entry.line->timer);
    for (auto& [number, job] : entry.line->jobs) {
      job.run(core_.refusal());
    }
  }
}

}  // namespace batchrpc::detail
