#include "rref/object_table.hpp"

#include <iterator>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/local_node.hpp"

// The objects, their types and calls. Their creation is in object_creation.cpp, their holders are
// in object_holds.cpp.
namespace batchrpc::detail {
namespace {

constexpr std::size_t kGoneKept = 65536;

}  // namespace

// The caller must hold the lock.
std::exception_ptr ObjectTable::gone_error(const ObjectId& object) const {
  const auto at = gone_.find(object);
  if (at == gone_.end() || at->second == Gone::released) return expired_error();
  return std::make_exception_ptr(NotFound("there is no such object on " + node_.name() +
                                          ": its creation never arrived, or failed"));
}

std::exception_ptr ObjectTable::expired_error() const {
  return std::make_exception_ptr(RRefExpired(
      "the object behind this RRef was released by " + node_.name() +
      ", which had not heard from its holders for NodeOptions::liveness.rref_lease; create "
      "a new one"));
}

std::exception_ptr ObjectTable::restarted_error() const {
  return std::make_exception_ptr(OwnerLost("the object behind this RRef is lost: " + node_.name() +
                                           " was restarted; create a new one"));
}

// For this process itself; other nodes get node_.refusal().
std::exception_ptr ObjectTable::closed_error() const {
  return std::make_exception_ptr(
      ShutDown("node " + node_.name() + " is shut down; make a new one"));
}

ObjectTable::ObjectTable(LocalNode& node, Outbox& outbox) : node_(node), outbox_(outbox) {}

ObjectTable::~ObjectTable() = default;

// --- types

// The caller must hold the lock.
ObjectTable::Type& ObjectTable::type_of(std::string_view name) {
  const auto at = types_.find(name);
  if (at != types_.end()) return at->second;
  return types_.try_emplace(std::string(name), Type{.name = std::string(name), .bases = {}})
      .first->second;
}

// The caller must hold the lock.
ObjectTable::Type& ObjectTable::type_of(const ObjectClass& type) {
  Type& known = type_of(type.name);
  known.methods_at_once = type.methods_at_once;
  return known;
}

void ObjectTable::allow_as(std::string_view type, std::string_view base, Upcast cast) {
  const std::lock_guard lock(mutex_);
  type_of(type).bases.insert_or_assign(std::string(base), cast);
}

// The caller must hold the lock.
Result<std::shared_ptr<void>> ObjectTable::value_as(const Entry& known,
                                                    std::string_view type) const {
  if (known.failed) return known.failed;
  if (!known.value || type.empty() || type == known.type->name) return known.value;
  const auto base = known.type->bases.find(type);
  if (base != known.type->bases.end()) return base->second(known.value);
  return std::make_exception_ptr(
      InvalidArgument("the object behind this RRef is a " + known.type->name +
                      ", but was called as a " + std::string(type) +
                      "; use the same type on both sides, or name the base class where the class "
                      "is exposed (expose_class<Derived(...), Base>)"));
}

std::shared_ptr<void> ObjectTable::find(const ObjectId& object, std::string_view type) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(object);
  if (at == entries_.end()) std::rethrow_exception(closed_ ? closed_error() : gone_error(object));
  return value_as(at->second, type).value();
}

// --- calls

void ObjectTable::run(const ObjectId& object, std::string_view type, ObjectJob job,
                      const Ref<CallState>& call) {
  Key key{object, 0};
  bool cancelled = false;
  std::exception_ptr why;
  {
    const std::lock_guard lock(mutex_);
    if (Entry* const known = entry(object, caller_here(), why)) {
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

// Drops the job of a cancelled call.
void ObjectTable::drop(const Key& job) {
  Jobs::node_type dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(job.first);
  if (at != entries_.end() && at->second.line) dropped = at->second.line->jobs.extract(job.second);
}

// The caller must hold the lock.
void ObjectTable::start(const ObjectId& object, Entry& known) {
  Line& line = *known.line;
  const std::size_t at_once = known.value ? known.type->methods_at_once : 1;
  while (line.running < at_once && line.starting < line.jobs.size()) {
    ++line.running;
    ++line.starting;
    node_.run_on_worker([weak = weak_from_this(), object] {
      if (const auto self = weak.lock()) self->run_next(object);
    });
  }
}

void ObjectTable::run_next(const ObjectId& object) {
  Jobs::node_type job;
  Result<std::shared_ptr<void>> value = std::shared_ptr<void>();
  bool one_at_a_time = true;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(object);
    if (at == entries_.end()) return;  // the node has ended
    --at->second.line->starting;
    one_at_a_time = at->second.type->methods_at_once == 1;
    auto& jobs = at->second.line->jobs;
    if (!jobs.empty()) {  // otherwise the calls were cancelled
      job = jobs.extract(jobs.begin());
      if (job.key() != 0) value = value_as(at->second, job.mapped().type);
    }
  }
  const bool makes = job && job.key() == 0;
  if (job) {
    job.mapped().hook.reset();
    if (job.mapped().call) job.mapped().call->set_in_line(false);
    {
      std::optional<RunningMethod> method;
      if (one_at_a_time && !makes) method.emplace(object);
      job.mapped().run(std::move(value));
    }
    job = {};
  }
  if (makes) return;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(object);
  if (at != entries_.end()) turn_over(at);
}

// The object is ready for the next job, as it was just made or a job has returned. The caller must
// hold the lock.
void ObjectTable::turn_over(Entries::iterator at) {
  --at->second.line->running;
  start(at->first, at->second);
  if (at->second.line->running == 0) at->second.line.reset();
  drop_if_unused(at);
}

// --- the end of an object

// The caller must hold the lock.
void ObjectTable::drop_if_unused(Entries::iterator at) {
  const Entry& known = at->second;
  const bool used = known.type == nullptr || known.line || known.held_here || !known.holds.empty();
  if (used) return;
  if (at->second.value) {  // its destructor is the user's code
    unused_.push_back(std::move(at->second.value));
    if (unused_.size() == 1) {
      node_.run_on_worker([weak = weak_from_this()] {
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
    awaited_of_.clear();
    unused.swap(unused_);
  }
  // In order, independent of hashing.
  std::map<ObjectId, Entry> ended(std::make_move_iterator(all.begin()),
                                  std::make_move_iterator(all.end()));
  all.clear();
  for (auto& [object, entry] : ended) {
    if (!entry.line) continue;
    node_.loop()->cancel(entry.line->timer);
    for (auto& [number, job] : entry.line->jobs) {
      job.run(node_.refusal());
    }
  }
}

}  // namespace batchrpc::detail
