#include "rref/object_table.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "node/node_core.hpp"

namespace batchrpc::detail {
namespace {

// How long calls wait for the creation of their object, which may come over another connection.
constexpr auto kExpectFor = std::chrono::seconds(10);
constexpr std::size_t kGoneKept = 65536;

std::exception_ptr released_error(const std::string& node) {
  return std::make_exception_ptr(
      NotFound("the object behind this RRef is gone from " + node +
               ": its last handle was released, or it was never created"));
}

}  // namespace

// What methods of an object fail with when its constructor threw `thrown`.
std::exception_ptr ObjectTable::construction_error(const std::string& type,
                                                   const std::exception_ptr& thrown) const {
  return std::make_exception_ptr(
      RemoteError(describe(thrown), type_name(thrown), core_.name(), "the constructor of " + type));
}

ObjectTable::ObjectTable(NodeCore& core) : core_(core) {}

ObjectTable::~ObjectTable() = default;

ObjectId ObjectTable::new_id() {
  const std::lock_guard lock(mutex_);
  return {core_.incarnation(), next_++};
}

std::size_t ObjectTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

// Under the lock. The entry of an object that was not heard of before waits for its creation.
ObjectTable::Entry& ObjectTable::entry(ObjectId object) {
  const auto [at, added] = entries_.try_emplace(object);
  if (added) wait_for_creation(object, at->second);
  return at->second;
}

// Under the lock.
void ObjectTable::wait_for_creation(ObjectId object, Entry& expected) {
  expected.timer = core_.loop()->schedule(
      core_.loop()->now() + kExpectFor, [weak = core_.weak_from_this(), object] {
        const auto core = weak.lock();
        if (!core) return;
        core->extension<ObjectTable>()->abandon(
            object, std::make_exception_ptr(NotFound("there is no such object on " + core->name() +
                                                     ": its creation never came")));
      });
}

struct ObjectTable::Coming {
  Coming(std::weak_ptr<NodeCore> node, ObjectId id) : core(std::move(node)), object(id) {}
  Coming(const Coming&) = delete;
  Coming& operator=(const Coming&) = delete;
  ~Coming() {
    const auto node = core.lock();
    if (!node) return;
    const auto table = node->extension<ObjectTable>();
    const std::lock_guard lock(table->mutex_);
    const auto at = table->entries_.find(object);
    if (at == table->entries_.end()) return;
    if (--at->second.coming == 0 && at->second.expected) {
      table->wait_for_creation(object, at->second);  // maybe over another connection
    }
  }

  const std::weak_ptr<NodeCore> core;
  const ObjectId object;
};

std::shared_ptr<void> ObjectTable::expect(ObjectId object) {
  const std::lock_guard lock(mutex_);
  if (closed_ || gone_.contains(object)) return nullptr;
  Entry& expected = entry(object);
  if (!expected.expected) return nullptr;
  ++expected.coming;
  core_.loop()->cancel(std::exchange(expected.timer, 0));
  return std::make_shared<Coming>(core_.weak_from_this(), object);
}

void ObjectTable::create(ObjectId object, ObjectId token, std::string_view type,
                         UniqueFunction<std::shared_ptr<void>()> construct,
                         UniqueFunction<void(Result<void>)> done) {
  const std::lock_guard lock(mutex_);
  if (closed_) throw DidNotRun{closed_error()};
  if (gone_.contains(object)) std::rethrow_exception(released_error(core_.name()));
  Entry& created = entry(object);
  if (!created.expected) {
    throw InvalidArgument("an object of this id exists already");
  }
  created.expected = false;
  core_.loop()->cancel(std::exchange(created.timer, 0));
  created.type = type;
  if (created.released_early.erase(token) == 0) created.tokens.insert(token);
  created.queue[0].run = [this, object, type = created.type, construct = std::move(construct),
                          done =
                              std::move(done)](const Result<std::shared_ptr<void>>& turn) mutable {
    if (!turn) {
      done(std::make_exception_ptr(DidNotRun{turn.error()}));
      return;
    }
    std::shared_ptr<void> value;
    std::exception_ptr failed;
    try {
      value = construct();
    } catch (...) {
      failed = std::current_exception();
    }
    const std::exception_ptr for_methods = failed ? construction_error(type, failed) : nullptr;
    {
      const std::lock_guard constructed(mutex_);
      const auto at = entries_.find(object);
      if (at != entries_.end()) {  // the node has not ended meanwhile
        at->second.value = std::move(value);
        at->second.failed = for_methods;
      }
    }
    done(failed ? Result<void>(for_methods) : Result<void>());
  };
  start(object, created);
}

void ObjectTable::own(ObjectId object, ObjectId token, std::string_view type,
                      std::shared_ptr<void> value) {
  const std::lock_guard lock(mutex_);
  if (closed_) std::rethrow_exception(closed_error());
  Entry& owned = entries_[object];
  owned.expected = false;
  owned.type = type;
  owned.value = std::move(value);
  owned.tokens.insert(token);
}

void ObjectTable::run(ObjectId object, std::string_view type, ObjectJob job,
                      const std::shared_ptr<CallState>& call) {
  Key key{object, 0};
  bool cancelled = false;
  bool is_gone = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw DidNotRun{closed_error()};
    is_gone = gone_.contains(object);
    if (!is_gone) {
      Entry& known = entry(object);
      key.second = known.next_job++;
      Job& waiting = known.queue[key.second];
      waiting.type = type;
      waiting.run = std::move(job);
      if (call) cancelled = !waiting.hook.emplace(weak_from_this(), key).attach(call);
      if (!known.expected) start(object, known);
    }
  }
  if (is_gone) job(released_error(core_.name()));
  if (cancelled) drop(key);
}

// A job whose call was cancelled.
void ObjectTable::drop(const Key& job) {
  std::map<std::uint64_t, Job>::node_type dropped;  // without the lock
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(job.first);
  if (at != entries_.end()) dropped = at->second.queue.extract(job.second);
}

// Under the lock.
void ObjectTable::start(ObjectId object, Entry& known) {
  if (known.busy || known.queue.empty()) return;
  known.busy = true;
  core_.run_on_worker([weak = core_.weak_from_this(), object] {
    if (const auto core = weak.lock()) core->extension<ObjectTable>()->run_next(object);
  });
}

void ObjectTable::run_next(ObjectId object) {
  std::map<std::uint64_t, Job>::node_type job;
  Result<std::shared_ptr<void>> value = std::shared_ptr<void>();
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end()) return;  // the node has ended
    Entry& known = at->second;
    if (!known.queue.empty()) {  // else the calls were cancelled meanwhile
      job = known.queue.extract(known.queue.begin());
      const std::string& type = job.mapped().type;
      if (known.failed) {
        value = known.failed;
      } else if (!type.empty() && type != known.type) {
        value = std::make_exception_ptr(InvalidArgument("the object behind this RRef is a " +
                                                        known.type + ", it was called as a " +
                                                        type + "; give both sides one type"));
      } else {
        value = known.value;
      }
    }
  }
  if (job) {
    job.mapped().hook.reset();
    job.mapped().run(std::move(value));
    job = {};
  }
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end()) return;
    at->second.busy = false;
    start(object, at->second);
  }
  const std::shared_ptr<void> destroyed = drop_if_unused(object);
}

void ObjectTable::add(ObjectId object, ObjectId token) {
  const std::lock_guard lock(mutex_);
  if (closed_ || gone_.contains(object)) return;
  Entry& known = entry(object);
  if (known.released_early.erase(token) == 0) known.tokens.insert(token);
}

void ObjectTable::release(ObjectId object, ObjectId token) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || gone_.contains(object)) return;
    Entry& known = entry(object);
    if (known.tokens.erase(token) == 0) known.released_early.insert(token);
  }
  std::shared_ptr<void> destroyed = drop_if_unused(object);
  if (destroyed) {  // its destructor is the user's code
    core_.run_on_worker([destroyed = std::move(destroyed)]() mutable { destroyed.reset(); });
  }
}

// The object, if nobody refers to it and nothing waits for it; it has left the table then.
std::shared_ptr<void> ObjectTable::drop_if_unused(ObjectId object) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(object);
  if (at == entries_.end()) return nullptr;
  Entry& known = at->second;
  const bool used = known.expected || known.busy || !known.queue.empty() || !known.tokens.empty();
  if (used) return nullptr;
  std::shared_ptr<void> value = std::move(known.value);
  entries_.erase(at);
  remember_gone(object);
  return value;
}

void ObjectTable::remember_gone(ObjectId object) {
  gone_.insert(object);
  gone_order_.push_back(object);
  if (gone_order_.size() > kGoneKept) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
}

void ObjectTable::abandon(ObjectId object, const std::exception_ptr& why) {
  std::map<std::uint64_t, Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end() || !at->second.expected) return;
    jobs = std::move(at->second.queue);
    core_.loop()->cancel(at->second.timer);
    entries_.erase(at);
    remember_gone(object);
  }
  for (auto& [number, job] : jobs)
    job.run(why);
}

void ObjectTable::close() {
  Entries ended;  // destroyed without the lock: destructors are the user's code
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    ended.swap(entries_);
  }
  for (auto& [object, entry] : ended) {
    core_.loop()->cancel(entry.timer);
    for (auto& [number, job] : entry.queue) {
      job.run(closed_error());
    }
  }
}

std::exception_ptr ObjectTable::closed_error() const {
  return std::make_exception_ptr(
      ShutDown("node " + core_.name() + " is shut down; make a new one"));
}

std::shared_ptr<void> ObjectTable::find(ObjectId object) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(object);
  if (at == entries_.end()) std::rethrow_exception(released_error(core_.name()));
  if (at->second.failed) std::rethrow_exception(at->second.failed);
  return at->second.value;
}

}  // namespace batchrpc::detail
