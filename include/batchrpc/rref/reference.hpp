#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/node/remote_call.hpp"
#include "batchrpc/rref/object_id.hpp"

/// What is under RRef<T>, without types.
namespace batchrpc::detail {

/// A handle as it travels. Each carries a reference of its own, which the sender has announced to
/// the owner, so that the object lives while the handle is on its way.
struct WireReference {
  std::string owner;
  ObjectId object;
  ObjectId token;
};

/// One counted reference of this process to an object; the copies of an RRef share it. Tells the
/// owner when it is destroyed. Thread-safe.
class BATCHRPC_EXPORT Reference {
 public:
  Reference(std::shared_ptr<NodeCore> core, WireReference identity);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// For an object that is being created by a call of this process.
  [[nodiscard]] static std::shared_ptr<Reference> to_new_object(std::shared_ptr<NodeCore> core,
                                                                std::string owner);
  /// That a peer has sent; on a thread that decodes for a node.
  [[nodiscard]] static std::shared_ptr<Reference> received(WireReference identity);

  /// A further reference, to be sent; announces it to the owner.
  [[nodiscard]] WireReference fork() const;

  [[nodiscard]] const WireReference& identity() const noexcept { return identity_; }
  [[nodiscard]] bool is_owner() const;
  /// The object, on its owner, once it is constructed; null elsewhere. Throws what its constructor
  /// threw.
  [[nodiscard]] std::shared_ptr<void> local() const;

  /// Calls the owner; fails at once when the creation has failed.
  void submit(const FunctionKey& function, OutgoingOptions options, Encoder& encoder,
              ReplyHandler&& handler) const;

  /// The creation was answered with an error: calls fail with it from now on.
  void creation_failed(const std::exception_ptr& error);

 private:
  const std::shared_ptr<NodeCore> core_;
  const WireReference identity_;
  mutable std::mutex mutex_;
  std::exception_ptr failed_;
};

/// What runs on an object: it gets the object, or the error in its place. Must not throw.
using ObjectJob = UniqueFunction<void(Result<std::shared_ptr<void>>)>;

/// The objects that a node owns. The creation of an object and the calls of its methods are put
/// into the object's own queue in the order in which they were read (of one peer: in the order in
/// which it sent them, whatever is large), and run on the workers one at a time. `type` is the
/// class's name on the wire.
BATCHRPC_EXPORT void create_object(ObjectId object, ObjectId token, std::string_view type,
                                   UniqueFunction<std::shared_ptr<void>()> construct,
                                   UniqueFunction<void(Result<void>)> done);
/// A creation is on its way, with these arguments; until what is returned is dropped, calls wait
/// for it.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<void> expect_object(Decoder& arguments);
BATCHRPC_EXPORT void run_on_object(ObjectId object, std::string_view type, ObjectJob job);
/// Takes over an object of this process; returns the first reference.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<Reference> own_object(
    const std::shared_ptr<NodeCore>& core, std::string_view type, std::shared_ptr<void> object);

/// Makes the node ready for objects; whatever exposes, creates or owns calls it first.
BATCHRPC_EXPORT void use_objects(const std::shared_ptr<NodeCore>& core);

}  // namespace batchrpc::detail
