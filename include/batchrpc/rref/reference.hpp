#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/base/ref.hpp"
#include "batchrpc/base/small_mutex.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/wait.hpp"
#include "batchrpc/rref/object_id.hpp"
#include "batchrpc/rref/object_names.hpp"

/// The part of RRef<T> that does not know types. docs/rref-protocol.md describes the protocol; the
/// code cites its rules R1 to R9.
namespace batchrpc::detail {

/// One handle in transit: the incarnation of the node that sends it (its parent), and a count of
/// the parent.
struct Fork {
  std::uint64_t parent = 0;
  std::uint64_t number = 0;

  friend auto operator<=>(const Fork&, const Fork&) = default;
};

/// A handle as it travels. The parent keeps the object alive until the owner knows the new holder
/// (R2).
struct WireReference {
  std::string owner{};
  ObjectId object{};
  std::string parent{};  ///< empty: the owner
  Fork fork{};
};

class OwnerLink;

/// A node's reference to an object, shared by all its RRefs to that object. The owner is notified
/// when the first RRef is created and when the last one is destroyed. Thread-safe.
class BATCHRPC_EXPORT Reference final : public KeptByCall,
                                        public std::enable_shared_from_this<Reference> {
 public:
  Reference(std::shared_ptr<LocalNode> node, std::shared_ptr<OwnerLink> link, ObjectId object);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// Returns the reference to an object that a call of this process is creating.
  [[nodiscard]] static std::shared_ptr<Reference> to_new_object(
      const std::shared_ptr<LocalNode>& node, std::string_view owner);
  /// Returns the reference that a peer has sent. Call it on a thread that decodes for a node.
  [[nodiscard]] static std::shared_ptr<Reference> received(const WireReference& wire);

  /// Returns a handle to be sent with the message that is being encoded.
  [[nodiscard]] WireReference fork(Encoder& message);

  [[nodiscard]] const ObjectId& object() const noexcept { return object_; }
  [[nodiscard]] const std::shared_ptr<LocalNode>& node() const noexcept { return node_; }
  [[nodiscard]] const std::shared_ptr<OwnerLink>& link() const noexcept { return link_; }
  /// Returns the name of the node that owns the object.
  [[nodiscard]] const std::string& owner() const noexcept;
  [[nodiscard]] bool is_owner() const noexcept;
  /// On the owner, returns the object as a `type`; null if it is not constructed yet. Throws the
  /// constructor's error; OwnerLost if the object belonged to an earlier incarnation of this node;
  /// ShutDown after the node's end; InvalidArgument on other nodes.
  [[nodiscard]] std::shared_ptr<void> local(std::string_view type) const;

  /// Calls the owner. Fails at once if the object no longer exists or will never exist.
  void submit(const FunctionKey& function, OutgoingOptions&& options, Encoder& encoder,
              ReplyHandler&& handler) const;

  [[nodiscard]] std::exception_ptr not_sent(std::exception_ptr error) const override;

  /// Reports that the creation by `maker` failed: from now on calls fail with its error.
  void creation_failed(const std::exception_ptr& error, std::string_view maker);
  /// Reports that there is no such object: calls fail with `error`, unless they fail already.
  void fail(std::exception_ptr error);

 private:
  const std::shared_ptr<LocalNode> node_;
  const std::shared_ptr<OwnerLink> link_;
  const ObjectId object_;
  mutable SmallMutex mutex_;
  std::exception_ptr failed_;
};

/// Returns the options of a call that creates an object. The object is not part of a call that the
/// calling thread may be answering. Throws InvalidArgument if the options ask for retries.
[[nodiscard]] BATCHRPC_EXPORT CallOptions options_of_creation(const CallOptions& options);

/// A job that runs on an object. It gets the object, or an error in its place. Must not throw.
using ObjectJob = UniqueFunction<void(Result<std::shared_ptr<void>>)>;
/// Creates an object.
using MakeObject = UniqueFunction<Future<std::shared_ptr<void>>()>;
/// Converts an object to one of its base classes.
using Upcast = std::shared_ptr<void> (*)(const std::shared_ptr<void>&);

/// A class of objects: its name on the wire, and how many methods of one object run at once.
struct ObjectClass {
  std::string_view name;
  std::size_t methods_at_once;
};

/// A method that the calling thread runs on an object whose other methods wait for it. A wait for
/// one of these is refused. Lives on the thread's stack until the method returns.
class BATCHRPC_EXPORT RunningMethod final : public WaitGuard {
 public:
  explicit RunningMethod(const ObjectId& object) noexcept : object_(object) {}
  /// Cancels calls whose futures were dropped meanwhile, if they are to be (cancel_when_dropped).
  ~RunningMethod();
  /// A call of the object's node was made by this thread. Remembers it if it is of an object whose
  /// method this thread runs. Null: there is no future.
  static void called(const ObjectId& object, StateBase* state);

 private:
  void check_wait(const StateBase& state) override;

  const ObjectId object_;
  std::vector<Ref<StateBase>> calls_{};  // of the object itself
};

/// Creates an object that this node owns. The object has a queue of its own: its creation and the
/// calls of its methods start on the workers in the order in which they were read: for one peer,
/// the order of sending, whatever their size. `maker` is the function or constructor as errors name
/// it, and must live for ever. `done` is called when the object exists, or when its creation
/// failed.
BATCHRPC_EXPORT void create_object(ObjectId object, const ObjectClass& type, std::string_view maker,
                                   MakeObject make, UniqueFunction<void(Result<void>)> done);
/// Reports that the object's creation is arriving. Calls wait for it until the result is dropped.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<void> expect_object(ObjectId object);
/// Returns the object as a `type`; null if it does not exist yet or has another type.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<void> find_object(ObjectId object,
                                                                std::string_view type);
/// Runs `job` on the object. An empty `type` accepts any type.
BATCHRPC_EXPORT void run_on_object(ObjectId object, std::string_view type, ObjectJob job);
/// Takes over an object of this process; returns the first reference.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<Reference> own_object(
    const std::shared_ptr<LocalNode>& node, const ObjectClass& type,
    const std::shared_ptr<void>& object);
/// Allows objects of the class `type` to be used as `base`.
BATCHRPC_EXPORT void allow_as(const std::shared_ptr<LocalNode>& node, std::string_view type,
                              std::string_view base, Upcast cast);

/// Prepares the node for objects. Must be called before anything is exposed, created or owned.
BATCHRPC_EXPORT void use_objects(const std::shared_ptr<LocalNode>& node);

}  // namespace batchrpc::detail
