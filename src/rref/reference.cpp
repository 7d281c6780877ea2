#include "batchrpc/rref/reference.hpp"

#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"
#include "call/notify.hpp"
#include "rref/rref_parts.hpp"

namespace batchrpc::detail {
namespace {

std::shared_ptr<LocalNode> node_of_this_message() {
  auto node = CurrentNode::get();
  if (!node)
    throw InvalidArgument("an RRef can be decoded only by a node, as an argument or a result");
  return node;
}

ObjectTable& objects_of(LocalNode& node) { return *node.extension<RrefParts>()->objects; }

template <class Function>
void expose_once(LocalNode& node, std::string_view name, Function function) {
  if (node.functions().find(name)) return;
  try {
    // The node outlives its functions.
    Allow members = [&peers = node.peers()](const PeerIdentity& caller) {
      return peers.is_member(caller);
    };
    node.expose(make_exposed(std::string(name), std::move(function),
                             ExposeOptions{.short_handler = true, .allow = std::move(members)}));
  } catch (const Error&) {  // another thread was faster, or the node has ended
  }
}

std::shared_ptr<RrefParts> parts_here() { return node_of_this_message()->extension<RrefParts>(); }

const PeerIdentity& caller() { return CallContext::current()->caller(); }

// Exposes the functions of the protocol: rref_messages.hpp.
void expose_protocol(LocalNode& node) {
  expose_once(node, kHold, [](const std::vector<HoldUpdate>& updates) {
    const auto parts = parts_here();
    parts->references->arrived(caller().name, parts->objects->update(caller(), updates));
  });
  expose_once(node, kArrived, [](const std::vector<Fork>& forks) {
    parts_here()->references->arrived(caller().name, forks);
  });
  expose_once(node, kAsk, [](const std::vector<ForkQuestion>& questions) {
    return parts_here()->references->asked(caller().name, questions);
  });
  expose_once(node, kNone, [](const std::vector<NoObject>& objects) {
    parts_here()->references->none(caller(), objects);
  });
  expose_once(node, kReady, [](ObjectId object) -> Future<void> {
    Promise<void> promise;
    Future<void> ready = promise.get_future();
    run_on_object(
        object, {},
        [promise = std::move(promise)](const Result<std::shared_ptr<void>>& value) mutable {
          if (value) {
            promise.set_value();
          } else {
            promise.set_error(std::make_exception_ptr(DidNotRun{value.error()}));
          }
        });
    return ready;
  });
  expose_once(node, kAbandon, [](const NoObject& none) {
    if (none.object.creator != caller().incarnation) {
      throw InvalidArgument("the object was created by another node");
    }
    parts_here()->objects->abandon(none);
  });
}

// Whether the object certainly does not exist. Otherwise the answer may have been lost.
bool surely_failed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RemoteError&) {
    return true;
  } catch (const Error& known) {
    return !known.may_have_run();
  } catch (...) {
    return true;
  }
}

// The error for methods of an object whose creation failed with `error`, in the owner's words.
std::exception_ptr for_methods(const std::exception_ptr& error, std::string_view maker) {
  try {
    std::rethrow_exception(error);
  } catch (const RemoteError& thrown) {
    if (!thrown.may_have_run()) return error;  // the maker never ran: the error names the cause
    return std::make_exception_ptr(
        RemoteError(thrown.thrown_what(), thrown.type(), thrown.node(), maker, false));
  } catch (const NotSent& creation) {  // calling again, as it suggests, would be useless
    constexpr std::string_view kNeverMade =
        "the object of this RRef was never created; create a new one: ";
    if (std::string_view(creation.what()).starts_with(kNeverMade)) return error;
    NotSent told(std::string(kNeverMade) + creation.what());
    if (const CallDiagnostics* const diagnostics = creation.diagnostics())
      set_diagnostics(told, std::make_shared<CallDiagnostics>(*diagnostics));
    return std::make_exception_ptr(told);
  } catch (const TimedOut& creation) {
    return std::make_exception_ptr(TimedOut(
        "the object of this RRef was not created in time; create a new one, with a longer timeout "
        "(Peer::with): " +
            std::string(creation.what()),
        false));
  } catch (...) {
    return error;
  }
}

void follow_node(LocalNode& node, const std::shared_ptr<RrefParts>& all) {
  node.on_change([weak = std::weak_ptr(all)](const PeerChange& change) {
    const auto parts = weak.lock();
    if (!parts) return;
    switch (change.kind) {
      case PeerChange::Kind::joined:
      case PeerChange::Kind::lost:
      case PeerChange::Kind::ticked:
        parts->references->tick();
        parts->objects->tick();
        return;
      case PeerChange::Kind::ended:
        parts->references->close();
        parts->objects->close();
        return;
      case PeerChange::Kind::leaving:
        parts->references->give_back();
        parts->outbox->flush();
        return;
    }
  });
  node.on_metrics([weak = std::weak_ptr(all)](NodeMetrics& metrics) {
    if (const auto parts = weak.lock()) add_metrics(*parts, metrics.rrefs);
  });
  node.on_end_report([weak = std::weak_ptr(all)] {
    const auto parts = weak.lock();
    return parts ? parts->objects->held_by_others() : std::vector<std::string>();
  });
}

}  // namespace

void use_objects(const std::shared_ptr<LocalNode>& node) {
  if (node->functions().find(kAbandon)) return;  // the last one to be exposed
  const auto parts = node->extension<RrefParts>();
  if (node->refusal()) {  // the node is ending and will have none
    parts->references->close();
    parts->objects->close();
    return;
  }
  std::call_once(parts->follows_node, [&] { follow_node(*node, parts); });
  expose_protocol(*node);
}

Reference::Reference(std::shared_ptr<LocalNode> node, std::shared_ptr<OwnerLink> link,
                     ObjectId object)
    : node_(std::move(node)), link_(std::move(link)), object_(object) {}

Reference::~Reference() {
  if (LocalNode::is_left_alone(node_)) return;
  link_->table().dropped(*this);
}

std::shared_ptr<Reference> Reference::to_new_object(const std::shared_ptr<LocalNode>& node,
                                                    std::string_view owner) {
  return node->extension<RrefParts>()->references->to_new_object(owner);
}

std::shared_ptr<Reference> Reference::received(const WireReference& wire) {
  const auto node = node_of_this_message();
  use_objects(node);
  return node->extension<RrefParts>()->references->received(wire);
}

WireReference Reference::fork(Encoder& message) {
  return link_->table().send(shared_from_this(), message);
}

const std::string& Reference::owner() const noexcept { return link_->name(); }

bool Reference::is_owner() const noexcept { return link_->is_self(); }

std::shared_ptr<void> Reference::local(std::string_view type) const {
  if (!is_owner()) {
    const std::exception_ptr lost = link_->lost();
    if (lost && owner() == node_->name()) std::rethrow_exception(lost);  // (R7)
    throw InvalidArgument("local(): the object lives on " + owner() + ", not on " + node_->name() +
                          "; use call() or to_here()");
  }
  return objects_of(*node_).find(object_, type);
}

void Reference::submit(const FunctionKey& function, OutgoingOptions&& options, Encoder& encoder,
                       ReplyHandler&& handler) const {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
  }
  if (const std::exception_ptr lost = link_->lost()) std::rethrow_exception(lost);
  if (options.wants_reply) options.kept = shared_from_this();
  if (is_owner()) RunningMethod::called(object_, handler.receiver().state());
  try {
    node_->submit(owner(), function, std::move(options), encoder, std::move(handler));
  } catch (const NotSent&) {
    std::rethrow_exception(not_sent(std::current_exception()));
  }
}

std::exception_ptr Reference::not_sent(std::exception_ptr error) const {
  if (code_of(error) != ErrorCode::not_sent) return error;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return error;  // it was never created, so there is nothing that was lost
  }
  link_->table().look_after_owner(*link_);
  const std::exception_ptr lost = link_->lost();
  if (!lost) return error;
  try {
    std::rethrow_exception(lost);
  } catch (const Error& known) {  // a copy, since each call has diagnostics of its own
    return copy_error(known, known.may_have_run(), {});
  }
}

void Reference::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!failed_) failed_ = std::move(error);
}

void Reference::creation_failed(const std::exception_ptr& error, std::string_view maker) {
  const std::exception_ptr why = for_methods(error, maker);
  // If it may have run and ended, the owner knows the outcome (R6, R8).
  if (surely_failed(error) || code_of(error) == ErrorCode::timed_out) fail(why);
  // Calls sent earlier wait there, unless the constructor itself failed.
  notify(*node_, owner(), kAbandon, no_object(object_, why));
}

CallOptions options_of_creation(const CallOptions& options) {
  if (options.retry.attempts != 1) {
    throw InvalidArgument(
        "a creation cannot be retried (CallOptions::retry); create another object");
  }
  return {.timeout = options.timeout,
          .detached = true,
          .metadata = options.metadata,
          .inherit_metadata = options.inherit_metadata,
          .trace = options.trace};
}

void RunningMethod::called(const ObjectId& object, StateBase* state) {
  if (state == nullptr) return;
  for (WaitGuard* guard = innermost(); guard != nullptr;) {
    auto* const method = dynamic_cast<RunningMethod*>(guard);
    if (method == nullptr) return;
    if (method->object_ == object) {
      method->calls_.push_back(Ref<StateBase>::share(*state));
      return;
    }
    guard = method->outer();
  }
}

RunningMethod::~RunningMethod() {
  for (const Ref<StateBase>& call : calls_)
    call->dropped();
}

void RunningMethod::check_wait(const StateBase& state) {
  for (const Ref<StateBase>& call : calls_) {
    if (call.get() != &state) continue;
    throw InvalidArgument(
        "a method waits for another method of its own object, which starts only when the first "
        "returns; use co_await, or call the C++ method directly");
  }
}

void create_object(ObjectId object, const ObjectClass& type, std::string_view maker,
                   MakeObject make, UniqueFunction<void(Result<void>)> done) {
  objects_of(*node_of_this_message())
      .create(object, caller(), type, maker, std::move(make), std::move(done));
}

std::shared_ptr<void> expect_object(ObjectId object) {
  return objects_of(*node_of_this_message()).expect(object);
}

std::shared_ptr<void> find_object(ObjectId object, std::string_view type) {
  try {
    return objects_of(*node_of_this_message()).find(object, type);
  } catch (const Error&) {
    return nullptr;
  }
}

void run_on_object(ObjectId object, std::string_view type, ObjectJob job) {
  const CallContext* const context = CallContext::current();
  objects_of(*node_of_this_message())
      .run(object, type, std::move(job),
           context != nullptr ? detail::ContextAccess::call(*context) : nullptr);
}

std::shared_ptr<Reference> own_object(const std::shared_ptr<LocalNode>& node,
                                      const ObjectClass& type,
                                      const std::shared_ptr<void>& object) {
  return node->extension<RrefParts>()->references->own(type, object);
}

void allow_as(const std::shared_ptr<LocalNode>& node, std::string_view type, std::string_view base,
              Upcast cast) {
  objects_of(*node).allow_as(type, base, cast);
}

}  // namespace batchrpc::detail
