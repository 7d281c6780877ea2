#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/rref/reference.hpp"
#include "batchrpc/rref/rref_report.hpp"
#include "batchrpc/transport/loop.hpp"
#include "call/drop_hook.hpp"
#include "rref/holders.hpp"
#include "rref/outbox.hpp"

namespace batchrpc::detail {

/// The objects that a node owns, their holders, and the calls that wait for them. An object is
/// destroyed when no node holds it and no call of it waits or runs (R1), or when its node ends.
/// Thread-safe.
class ObjectTable : public std::enable_shared_from_this<ObjectTable> {
 public:
  ObjectTable(LocalNode& node, Outbox& outbox);
  ~ObjectTable();

  /// Creates an object for `user`, which holds it from now on.
  void create(const ObjectId& object, const PeerIdentity& user, const ObjectClass& type,
              std::string_view maker, MakeObject make, UniqueFunction<void(Result<void>)> done);
  /// Announces that the object's creation is arriving. Calls wait for it as long as the result
  /// (maybe null) lives.
  [[nodiscard]] std::shared_ptr<void> expect(const ObjectId& object);
  /// Adds a new object that this node holds. Throws ShutDown.
  void own(const ObjectId& object, const ObjectClass& type, const std::shared_ptr<void>& value);
  /// Runs a job on the object in its turn. If the job must not run, it is called with an error.
  /// `call` is the job's call, and cancelling it drops the job; null: it cannot be cancelled.
  void run(const ObjectId& object, std::string_view type, ObjectJob job,
           const Ref<CallState>& call);
  /// The creator reports that the object will not exist: calls that wait for it fail.
  void abandon(const NoObject& none);
  /// Destroys the objects at the node's end and refuses new ones. Objects with running methods are
  /// destroyed when these return. Without it, handles to the node's own objects that are kept in
  /// objects would keep the node alive.
  void close();

  /// Processes the holds that `user` reports. Returns those of this node's own forks that have
  /// arrived.
  [[nodiscard]] std::vector<Fork> update(const PeerIdentity& user,
                                         const std::vector<HoldUpdate>& updates);
  /// Holds by this node itself. Before await_here() no other node can know the object.
  /// @{
  void await_here(const ObjectId& object);
  void hold_here(const ObjectId& object);
  void let_go_here(const ObjectId& object);
  /// @}

  /// Checks the holders (R4, R5).
  void tick();

  void allow_as(std::string_view type, std::string_view base, Upcast cast);

  /// The object as a `type`; null before it is constructed. Throws NotFound, the constructor's
  /// error, or InvalidArgument (another type).
  [[nodiscard]] std::shared_ptr<void> find(const ObjectId& object, std::string_view type) const;
  [[nodiscard]] std::vector<OwnedRRefs> report() const;
  /// A report for people, in lines: the objects that other nodes hold.
  [[nodiscard]] std::vector<std::string> held_by_others() const;

 private:
  // Identifies a waiting job: its object, and its number there.
  using Key = std::pair<ObjectId, std::uint64_t>;
  using Hook = DropHook<ObjectTable, Key>;
  friend Hook;
  struct Job {
    std::string type{};  // the caller's type of the object
    ObjectJob run{};
    Ref<CallState> call{};  // may be null
    std::optional<Hook> hook{};
  };
  struct Type {
    std::string name;
    std::map<std::string, Upcast, std::less<>> bases;
    std::size_t methods_at_once = 1;
  };
  using Jobs =
      std::map<std::uint64_t, Job, std::less<>, PoolAllocator<std::pair<const std::uint64_t, Job>>>;
  // For an object that is used or awaited; others have none.
  struct Line : Pooled {
    Jobs jobs;  // the construction is number 0
    std::uint64_t next_job = 1;
    int coming = 0;           // creations that are arriving
    std::size_t running = 0;  // jobs on workers
    std::size_t starting =
        0;                // of these, jobs that are still in `jobs`, unless they were cancelled
    bool listed = false;  // a holder has reported it again before it was known here
    TimerId timer = 0;
  };
  struct Entry {
    Type* type = nullptr;  // null: its creation has not arrived
    std::shared_ptr<void> value;
    std::exception_ptr failed;
    std::vector<Hold> holds;
    std::unique_ptr<Line> line;
    std::uint64_t awaited_for = 0;  // the incarnation of the peer that named it first; 0: this node
    bool held_here = false;

    [[nodiscard]] Line& in_line() {
      if (!line) line = std::make_unique<Line>();
      return *line;
    }
  };
  using Entries = std::unordered_map<ObjectId, Entry, ObjectIdHash>;
  enum class Gone : std::uint8_t { released, never_made };
  static constexpr std::size_t kMostAwaited = 65536;
  static constexpr std::size_t kMostAwaitedOfOne = 8192;  // that one peer has named
  struct Coming;
  [[nodiscard]] std::exception_ptr making_error(std::string_view maker,
                                                const std::exception_ptr& thrown) const;
  [[nodiscard]] std::exception_ptr gone_error(const ObjectId& object) const;
  [[nodiscard]] std::exception_ptr expired_error() const;
  [[nodiscard]] std::exception_ptr restarted_error() const;
  [[nodiscard]] std::exception_ptr closed_error() const;
  Type& type_of(std::string_view name);
  Type& type_of(const ObjectClass& type);
  [[nodiscard]] Result<std::shared_ptr<void>> value_as(const Entry& entry,
                                                       std::string_view type) const;
  [[nodiscard]] std::exception_ptr why_unknown(const ObjectId& object) const;
  [[nodiscard]] Entry* entry(const ObjectId& object, std::uint64_t peer, std::exception_ptr& why);
  [[nodiscard]] static std::uint64_t caller_here() noexcept;  // the incarnation; 0: no call
  Entry& await(const ObjectId& object, std::uint64_t peer);
  void no_longer_awaited(const Entry& entry);
  void fail_some(Jobs jobs, const std::exception_ptr& why);
  void wait_for_creation(const ObjectId& object, Entry& entry);
  void give_up_on(const ObjectId& object);
  void run_next(const ObjectId& object);
  void make(const ObjectId& object, std::string_view maker, MakeObject make,
            UniqueFunction<void(Result<void>)> done, const Result<std::shared_ptr<void>>& turn);
  void made(const ObjectId& object, std::string_view maker, Result<std::shared_ptr<void>> value,
            UniqueFunction<void(Result<void>)> done);
  void turn_over(Entries::iterator at);
  void start(const ObjectId& object, Entry& entry);
  void drop(const Key& job);
  static void hold(Entry& entry, Holder& holder, TimePoint now);
  void let_go(const ObjectId& object, Holder& holder);
  void let_go_of_rest();
  bool note_hold(const ObjectId& object, Holder& holder, TimePoint now);
  void drop_if_unused(Entries::iterator at);
  void destroy_unused();
  void remember_gone(const ObjectId& object, Gone how);

  LocalNode& node_;
  Outbox& outbox_;
  mutable std::mutex mutex_;
  Entries entries_;
  Holders holders_;
  std::map<std::string, Type, std::less<>> types_;
  // These are many small nodes with short lives. Separate pages keep them from fragmenting the
  // heap.
  std::pmr::unsynchronized_pool_resource gone_memory_;
  std::pmr::map<ObjectId, Gone> gone_{&gone_memory_};
  std::deque<ObjectId> gone_order_;
  std::vector<std::shared_ptr<void>> unused_;        // a worker will destroy them
  std::size_t awaited_ = 0;                          // objects whose creation has not arrived
  std::map<std::uint64_t, std::size_t> awaited_of_;  // the same by Entry::awaited_for
  bool closed_ = false;
};

}  // namespace batchrpc::detail
