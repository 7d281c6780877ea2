#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/base/small_mutex.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/rref/object_id.hpp"
#include "batchrpc/rref/object_names.hpp"

/// What is under RRef<T>, without types. The protocol is the note in docs/rref-protocol.md, whose
/// rules R1 to R9 are cited in the code.
namespace batchrpc::detail {

/// One handle on its way: the incarnation of the node that sends it, its parent, and that one's
/// count.
struct Fork {
  std::uint64_t parent = 0;
  std::uint64_t number = 0;

  friend auto operator<=>(const Fork&, const Fork&) = default;
};

/// A handle as it travels. The parent keeps the object alive until the owner knows of the new
/// holder (R2).
struct WireReference {
  std::string owner{};
  ObjectId object{};
  std::string parent{};  ///< empty: the owner
  Fork fork{};
};

class OwnerLink;

/// That this node refers to an object: what the RRefs of a node to it share. The owner is told when
/// the first comes and when the last goes. Thread-safe.
class BATCHRPC_EXPORT Reference : public std::enable_shared_from_this<Reference> {
 public:
  Reference(std::shared_ptr<LocalNode> node, std::shared_ptr<OwnerLink> link, ObjectId object);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// For an object that is being created by a call of this process.
  [[nodiscard]] static std::shared_ptr<Reference> to_new_object(
      const std::shared_ptr<LocalNode>& node, std::string_view owner);
  /// That a peer has sent; on a thread that decodes for a node.
  [[nodiscard]] static std::shared_ptr<Reference> received(const WireReference& wire);

  /// A handle to be sent with the message that is being encoded.
  [[nodiscard]] WireReference fork(Encoder& message);

  [[nodiscard]] const ObjectId& object() const noexcept { return object_; }
  [[nodiscard]] const std::shared_ptr<LocalNode>& node() const noexcept { return node_; }
  [[nodiscard]] const std::shared_ptr<OwnerLink>& link() const noexcept { return link_; }
  /// The name of the node that owns the object.
  [[nodiscard]] const std::string& owner() const noexcept;
  [[nodiscard]] bool is_owner() const noexcept;
  /// The object as a `type`, on its owner, once it is constructed. Throws what its constructor
  /// threw; NotFound before; OwnerLost of a former self; InvalidArgument elsewhere.
  [[nodiscard]] std::shared_ptr<void> local(std::string_view type) const;

  /// Calls the owner. Fails at once when there is no object any more, or will be none.
  void submit(const FunctionKey& function, OutgoingOptions&& options, Encoder& encoder,
              ReplyHandler&& handler) const;

  /// The creation, by `maker`, was answered with an error: calls fail with it from now on.
  void creation_failed(const std::exception_ptr& error, std::string_view maker);
  /// There is no such object: calls fail with `error`, unless they fail already.
  void fail(std::exception_ptr error);

 private:
  const std::shared_ptr<LocalNode> node_;
  const std::shared_ptr<OwnerLink> link_;
  const ObjectId object_;
  mutable SmallMutex mutex_;
  std::exception_ptr failed_;
};

/// What runs on an object: it gets the object, or the error in its place. Must not throw.
using ObjectJob = UniqueFunction<void(Result<std::shared_ptr<void>>)>;
/// Makes an object.
using MakeObject = UniqueFunction<Future<std::shared_ptr<void>>()>;
/// The same object as one of its base classes.
using Upcast = std::shared_ptr<void> (*)(const std::shared_ptr<void>&);

/// The objects that a node owns. The creation of an object and the calls of its methods are put
/// into the object's own queue in the order in which they were read (of one peer: in the order in
/// which it sent them, whatever is large), and run on the workers one at a time. `type` is the
/// class's name on the wire; `maker`, which lives for ever, is what errors call the function or
/// constructor that makes it. `done` is called when the object is there, or will never be.
BATCHRPC_EXPORT void create_object(ObjectId object, std::string_view type, std::string_view maker,
                                   MakeObject make, UniqueFunction<void(Result<void>)> done);
/// The object's creation is on its way; until what is returned is dropped, calls wait for it.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<void> expect_object(ObjectId object);
/// The object as a `type`; null where it is not there yet, or of another type.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<void> find_object(ObjectId object,
                                                                std::string_view type);
/// `type` empty: whatever it is.
BATCHRPC_EXPORT void run_on_object(ObjectId object, std::string_view type, ObjectJob job);
/// Takes over an object of this process; returns the first reference.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<Reference> own_object(
    const std::shared_ptr<LocalNode>& node, std::string_view type,
    const std::shared_ptr<void>& object);
/// Objects of the class `type` may be used as `base`.
BATCHRPC_EXPORT void allow_as(const std::shared_ptr<LocalNode>& node, std::string_view type,
                              std::string_view base, Upcast cast);

/// Makes the node ready for objects; whatever exposes, creates or owns calls it first.
BATCHRPC_EXPORT void use_objects(const std::shared_ptr<LocalNode>& node);

}  // namespace batchrpc::detail
