#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "batchrpc/rref/reference.hpp"
#include "batchrpc/transport/loop.hpp"
#include "node/drop_hook.hpp"

namespace batchrpc::detail {

/// The objects that one node owns. References are tokens: adding and releasing one is idempotent,
/// and a release that overtakes its addition cancels it, so that the order of messages over
/// different connections does not matter. An object is destroyed when no token is left and nothing
/// is queued, or when its node ends. Thread-safe.
///
/// What a node that dies has held, and a handle in a message that nobody has decoded, stay until
/// this node ends: leases are to come.
class ObjectTable : public std::enable_shared_from_this<ObjectTable> {
 public:
  explicit ObjectTable(NodeCore& core);
  ~ObjectTable();

  void create(ObjectId object, ObjectId token, std::string_view type,
              UniqueFunction<std::shared_ptr<void>()> construct,
              UniqueFunction<void(Result<void>)> done);
  /// The creation of the object is coming in, for as long as what is returned lives (may be null);
  /// so long, calls wait for it.
  [[nodiscard]] std::shared_ptr<void> expect(ObjectId object);
  void own(ObjectId object, ObjectId token, std::string_view type, std::shared_ptr<void> value);
  /// `call`: whose job it is, which goes with it when it is cancelled; null: it can not be.
  void run(ObjectId object, std::string_view type, ObjectJob job,
           const std::shared_ptr<CallState>& call);
  void add(ObjectId object, ObjectId token);
  void release(ObjectId object, ObjectId token);
  /// The creator says that there will be no such object, and why: calls that wait for it fail so.
  void abandon(ObjectId object, const std::exception_ptr& why);
  /// At the node's end: destroys the objects (those whose methods run, when these have returned),
  /// and refuses new ones. Handles of the node's own that objects hold would keep it alive.
  void close();

  /// Null before it is constructed. Throws NotFound, or what the constructor threw.
  [[nodiscard]] std::shared_ptr<void> find(ObjectId object) const;
  [[nodiscard]] ObjectId new_id();
  [[nodiscard]] std::size_t size() const;

 private:
  // One that waits: its object, and its number there.
  using Key = std::pair<ObjectId, std::uint64_t>;
  using Hook = DropHook<ObjectTable, Key>;
  friend Hook;
  struct Job {
    std::string type{};  // what the caller takes the object for; empty: the construction
    ObjectJob run{};
    std::optional<Hook> hook{};
  };
  struct Entry {
    std::string type;
    std::shared_ptr<void> value;
    std::exception_ptr failed;
    std::set<ObjectId> tokens;
    std::set<ObjectId> released_early;
    std::map<std::uint64_t, Job> queue;  // the construction is number 0
    std::uint64_t next_job = 1;
    bool expected = true;  // spoken of, but its creation has not come yet
    int coming = 0;        // creations that have begun to come in
    bool busy = false;
    TimerId timer = 0;
  };
  using Entries = std::map<ObjectId, Entry>;

  [[nodiscard]] std::exception_ptr construction_error(const std::string& type,
                                                      const std::exception_ptr& thrown) const;
  struct Coming;
  Entry& entry(ObjectId object);
  void wait_for_creation(ObjectId object, Entry& entry);
  void run_next(ObjectId object);
  void start(ObjectId object, Entry& entry);
  void drop(const Key& job);
  std::shared_ptr<void> drop_if_unused(ObjectId object);
  void remember_gone(ObjectId object);
  [[nodiscard]] std::exception_ptr closed_error() const;

  NodeCore& core_;
  mutable std::mutex mutex_;
  Entries entries_;
  // Many small nodes that come and go: in pages of their own, so that the heap is not riddled by
  // them.
  std::pmr::unsynchronized_pool_resource gone_memory_;
  std::pmr::set<ObjectId> gone_{&gone_memory_};
  std::deque<ObjectId> gone_order_;
  std::uint64_t next_ = 1;
  bool closed_ = false;
};

}  // namespace batchrpc::detail
