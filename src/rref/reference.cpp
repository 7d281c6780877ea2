#include "batchrpc/rref/reference.hpp"

#include "batchrpc/base/error.hpp"
#include "batchrpc/node/caller.hpp"
#include "node/node_core.hpp"
#include "rref/object_table.hpp"

namespace batchrpc::detail {
namespace {

constexpr std::string_view kAdd = "batchrpc.rref.add";
constexpr std::string_view kRelease = "batchrpc.rref.release";
constexpr std::string_view kAbandon = "batchrpc.rref.abandon";

std::shared_ptr<NodeCore> node_of_this_message() {
  auto core = CurrentNode::get();
  if (!core) throw InvalidArgument("an RRef is decoded by a node only, as an argument or result");
  return core;
}

template <class Function>
void expose_once(NodeCore& core, std::string_view name, Function function) {
  if (core.functions().find(name)) return;
  try {
    core.expose(std::make_shared<TypedFunction<Function, FunctionTraits<Function>>>(
        std::string(name), std::move(function), ExposeOptions{.short_handler = true}));
  } catch (const Error&) {  // another thread was faster, or the node has ended
  }
}

template <class... Args>
void tell_owner(const std::shared_ptr<NodeCore>& core, const std::string& owner,
                std::string_view name, const Args&... args) {
  const auto submit = [&](const FunctionKey& key, OutgoingOptions options, Encoder& encoder,
                          ReplyHandler&& handler) {
    core->submit(owner, key, std::move(options), encoder, std::move(handler));
  };
  try {
    send_notification<Args...>(submit, function_key(name, signature<void, Args...>()), args...);
  } catch (const Error&
               error) {  // the owner or this node is gone, and with it the object or the reference
    core->log().debug(std::string(name) + " to " + owner + ": " + error.what());
  }
}

}  // namespace

void use_objects(const std::shared_ptr<NodeCore>& core) {
  if (core->functions().find(kAbandon)) return;  // the last one, below
  if (core->refusal()) return;                   // it ends, and will have none
  core->on_change(
      [objects = std::weak_ptr(core->extension<ObjectTable>())](const PeerChange& change) {
        const auto table = objects.lock();
        if (table && change.kind == PeerChange::Kind::ended) table->close();
      });
  const auto table = [] { return node_of_this_message()->extension<ObjectTable>(); };
  expose_once(*core, kAdd,
              [table](ObjectId object, ObjectId token) { table()->add(object, token); });
  expose_once(*core, kRelease,
              [table](ObjectId object, ObjectId token) { table()->release(object, token); });
  expose_once(*core, kAbandon,
              [table](ObjectId object, std::uint16_t code, const std::string& why) {
                table()->abandon(object, make_error(static_cast<ErrorCode>(code), why, false));
              });
}

Reference::Reference(std::shared_ptr<NodeCore> core, WireReference identity)
    : core_(std::move(core)), identity_(std::move(identity)) {}

Reference::~Reference() {
  if (NodeCore::is_left_alone(core_)) return;
  if (is_owner()) {
    core_->extension<ObjectTable>()->release(identity_.object, identity_.token);
  } else {
    tell_owner(core_, identity_.owner, kRelease, identity_.object, identity_.token);
  }
}

std::shared_ptr<Reference> Reference::to_new_object(std::shared_ptr<NodeCore> core,
                                                    std::string owner) {
  const auto table = core->extension<ObjectTable>();
  WireReference identity{
      .owner = std::move(owner), .object = table->new_id(), .token = table->new_id()};
  return std::make_shared<Reference>(std::move(core), std::move(identity));
}

std::shared_ptr<Reference> Reference::received(WireReference identity) {
  auto core = node_of_this_message();
  use_objects(core);
  return std::make_shared<Reference>(std::move(core), std::move(identity));
}

WireReference Reference::fork() const {
  const auto table = core_->extension<ObjectTable>();
  WireReference forked{
      .owner = identity_.owner, .object = identity_.object, .token = table->new_id()};
  if (is_owner()) {
    table->add(forked.object, forked.token);
  } else {
    // Sent before this handle can be released, on the same session: so the object outlives the
    // handle's way.
    tell_owner(core_, forked.owner, kAdd, forked.object, forked.token);
  }
  return forked;
}

bool Reference::is_owner() const { return identity_.owner == core_->name(); }

std::shared_ptr<void> Reference::local() const {
  if (!is_owner()) {
    throw InvalidArgument("local(): the object lives on " + identity_.owner + ", not on " +
                          core_->name() + "; use call() or to_here()");
  }
  auto object = core_->extension<ObjectTable>()->find(identity_.object);
  if (!object) throw NotFound("local(): the object is not constructed yet");
  return object;
}

void Reference::submit(const FunctionKey& function, OutgoingOptions options, Encoder& encoder,
                       ReplyHandler&& handler) const {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
  }
  core_->submit(identity_.owner, function, std::move(options), encoder, std::move(handler));
}

void Reference::creation_failed(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    failed_ = error;
  }
  // Calls that were sent already wait there, unless the constructor itself was what failed.
  const ErrorCode code = code_of(error);
  if (code != ErrorCode::remote_error) {
    tell_owner(core_, identity_.owner, kAbandon, identity_.object, static_cast<std::uint16_t>(code),
               describe(error));
  }
}

void create_object(ObjectId object, ObjectId token, std::string_view type,
                   UniqueFunction<std::shared_ptr<void>()> construct,
                   UniqueFunction<void(Result<void>)> done) {
  node_of_this_message()->extension<ObjectTable>()->create(object, token, type,
                                                           std::move(construct), std::move(done));
}

std::shared_ptr<void> expect_object(Decoder& arguments) {
  const auto [object] = decode_struct<ObjectId>(arguments, wire::kBodyPointer - 1);
  return node_of_this_message()->extension<ObjectTable>()->expect(object);
}

void run_on_object(ObjectId object, std::string_view type, ObjectJob job) {
  const CallContext* const context = CallContext::current();
  node_of_this_message()->extension<ObjectTable>()->run(
      object, type, std::move(job), context != nullptr ? context->call() : nullptr);
}

std::shared_ptr<Reference> own_object(const std::shared_ptr<NodeCore>& core, std::string_view type,
                                      std::shared_ptr<void> object) {
  auto reference = Reference::to_new_object(core, core->name());
  const auto& identity = reference->identity();
  core->extension<ObjectTable>()->own(identity.object, identity.token, type, std::move(object));
  return reference;
}

}  // namespace batchrpc::detail
