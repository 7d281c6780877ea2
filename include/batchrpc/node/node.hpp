#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/call/argument_check.hpp"
#include "batchrpc/call/caller.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/peer_ref.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

class NodeCore;

template <class T>
class RRef;
struct RRefReport;

namespace detail {
class FunctionFamily;

/// Of a constructor T(Params...), or of a class alone.
template <class T>
struct ConstructorTraits {
  using Class = T;
};
template <class T, class... Params>
struct ConstructorTraits<T(Params...)> {
  using Class = T;
  using Arguments = std::tuple<std::remove_cvref_t<Params>...>;
};

}  // namespace detail

/// A change of the group: a node has joined, or was lost.
struct MembershipChange {
  bool joined = false;   ///< false: lost
  PeerInfo peer{};       ///< who, as it is now
  std::string reason{};  ///< of a loss
};

/// One participant: it exposes functions to its peers and calls theirs.
///
///     batchrpc::Node node({.name = "worker0", .rank = 0, .world_size = 2,
///                          .join = "tcp://127.0.0.1:29500"});
///     node.expose<&add>();
///     batchrpc::Future<int> sum = node.call<&add>("worker1", 1, 2);
///
/// Errors of a call are in its future (docs/errors.md). All functions are thread-safe, but
/// destruction, moving and shutdown() belong to one thread while no other uses the node. Where
/// handlers and callbacks run: docs/threading.md. Whatever a node is asked for that was moved from,
/// it throws InvalidArgument, but where noexcept forbids that.
class BATCHRPC_EXPORT Node {
 public:
  /// Joins its group; blocks until that has happened. Throws InvalidArgument (an option out of
  /// range) or JoinFailed (an address in use, a name or rank taken, ranks missing at the time-out:
  /// named).
  explicit Node(NodeOptions options);
  /// The same without blocking, for several nodes on one thread.
  [[nodiscard]] static Future<Node> start(NodeOptions options);
  /// With `join = "env://"`: MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE as torchrun sets them.
  [[nodiscard]] static Node from_env(NodeOptions options = {});

  /// The node goes on under the new object; handlers and calls under way do not notice.
  Node(Node&&) noexcept;
  /// The same; the node that was there ends as by its destructor. Moving to itself changes nothing.
  Node& operator=(Node&&) noexcept;
  /// As shutdown(NodeOptions::shutdown_timeout). On a thread of the node's own, the node ends on
  /// another one, soon.
  ~Node();

  /// As others call it; empty when moved from.
  [[nodiscard]] const std::string& name() const noexcept;
  /// Its number in the group, the root's choice if the options left it open; -1 when moved from.
  [[nodiscard]] int rank() const noexcept;
  /// How many nodes the group has; 0: open, or moved from.
  [[nodiscard]] int world_size() const noexcept;
  /// Where others reach it, such as "tcp://127.0.0.1:29500": what they may `join`, for a root
  /// (that was not told to listen everywhere, tcp://0.0.0.0:port). The TCP address where it has
  /// one: also a root whose `join` is a Unix socket listens on a port of loopback besides, unless
  /// NodeOptions::transport is unix_socket.
  [[nodiscard]] std::string address() const;
  /// Where its status page is (NodeOptions::status), such as "http://127.0.0.1:43211"; empty: there
  /// is none, or the node has ended.
  [[nodiscard]] std::string status_address() const;

  // --- calling

  /// Calls a function that the peer has exposed with expose<F>(). The arguments are converted to
  /// the function's own parameter types and encoded before this returns. The future is of the
  /// function's result, of the caller's own copy where that is a view: of a std::string for a
  /// std::string_view, of a std::vector<T> for a std::span<const T>.
  template <auto F, class... Args>
  auto call(PeerRef peer, Args&&... args) const {
    return call_with<F>(CallOptions{}, peer, std::forward<Args>(args)...);
  }
  /// The same with a time-out of its own, and retries.
  template <auto F, class... Args>
  auto call_with(const CallOptions& options, PeerRef peer, Args&&... args) const {
    return call_typed<typename detail::FunctionTraits<decltype(F)>::Result>(
        key<F>(), options, peer,
        static_cast<typename detail::FunctionTraits<decltype(F)>::Arguments*>(nullptr),
        std::forward<Args>(args)...);
  }

  /// Calls a function by name: `node.call<int(int, int)>("worker1", "add", 1, 2)`.
  template <class Function, class... Args>
  requires std::is_function_v<Function>
  auto call(PeerRef peer, std::string_view function, Args&&... args) const {
    return call_with<Function>(CallOptions{}, peer, function, std::forward<Args>(args)...);
  }
  /// The same with a time-out of its own.
  template <class Function, class... Args>
  requires std::is_function_v<Function>
  auto call_with(const CallOptions& options, PeerRef peer, std::string_view function,
                 Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    return call_typed<typename Traits::Result>(key<Traits>(function), options, peer,
                                               static_cast<typename Traits::Arguments*>(nullptr),
                                               std::forward<Args>(args)...);
  }

  /// Sends a call whose result nobody waits for: at most once, and without word of what became of
  /// it. Throws what goes wrong before it is queued.
  template <auto F, class... Args>
  void notify(PeerRef peer, Args&&... args) const {
    notify_typed(key<F>(), peer,
                 static_cast<typename detail::FunctionTraits<decltype(F)>::Arguments*>(nullptr),
                 std::forward<Args>(args)...);
  }
  /// The same by name.
  template <class Function, class... Args>
  requires std::is_function_v<Function>
  void notify(PeerRef peer, std::string_view function, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    notify_typed(key<Traits>(function), peer, static_cast<typename Traits::Arguments*>(nullptr),
                 std::forward<Args>(args)...);
  }

  /// Ready when a call of `bytes` bytes of arguments, what travels beside them included, would be
  /// taken rather than refused with Overloaded (NodeOptions::max_outstanding_bytes): make it then,
  /// in a continuation or at once, for the room is not kept for long. Those who wait for one peer
  /// are served in order; handlers' waits go before others, and wait for the peer to read, not for
  /// its answers. Fails as a call would when the peer is not known or has not joined again since it
  /// was restarted, when it is lost while one waits, and when this node ends. One that is lost
  /// already is tried, as by a call, and has room: there is no wait for its return
  /// (wait_for_peer()).
  [[nodiscard]] Future<void> wait_for_credit(PeerRef peer, std::size_t bytes) const;

  /// Calls one function on many peers, a range of names, ranks or PeerInfos (`node.peers()`, which
  /// holds lost ones too); the arguments are encoded once. One future a peer, in their
  /// order; what goes wrong with one peer is in its future alone.
  template <auto F, class Peers, class... Args>
  auto call_all(const Peers& peers, Args&&... args) const {
    return call_all_with<F>(CallOptions{}, peers, std::forward<Args>(args)...);
  }
  /// The same with a time-out, for each of the calls.
  template <auto F, class Peers, class... Args>
  auto call_all_with(const CallOptions& options, const Peers& peers, Args&&... args) const {
    using Traits = detail::FunctionTraits<decltype(F)>;
    return call_all_typed<typename Traits::Result>(
        key<F>(), options, peers, static_cast<typename Traits::Arguments*>(nullptr),
        std::forward<Args>(args)...);
  }
  /// The same by name.
  template <class Function, class Peers, class... Args>
  requires std::is_function_v<Function>
  auto call_all(const Peers& peers, std::string_view function, Args&&... args) const {
    return call_all_with<Function>(CallOptions{}, peers, function, std::forward<Args>(args)...);
  }
  /// The same by name, with a time-out for each of the calls.
  template <class Function, class Peers, class... Args>
  requires std::is_function_v<Function>
  auto call_all_with(const CallOptions& options, const Peers& peers, std::string_view function,
                     Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    return call_all_typed<typename Traits::Result>(
        key<Traits>(function), options, peers, static_cast<typename Traits::Arguments*>(nullptr),
        std::forward<Args>(args)...);
  }

  // --- exposing

  /// Lets peers call the function `F` under its qualified name. Throws InvalidArgument when the
  /// name is taken.
  template <auto F>
  requires(!std::is_member_pointer_v<decltype(F)>) void expose(
      const ExposeOptions& options = {}) const {
    expose(std::string(detail::function_name<F>()), F, options);
  }

  /// Lets peers call the method `M` of one object. The node shares the object until unexpose(), or
  /// its own end, and until calls under way have finished.
  template <auto M, class Object>
  requires std::is_member_function_pointer_v<decltype(M)>
  void expose(std::shared_ptr<Object> object, const ExposeOptions& options = {}) const {
    expose_method<M>(std::move(object), options);
  }
  /// The same for an object that outlives the node.
  template <auto M, class Object>
  requires(std::is_member_function_pointer_v<decltype(M)>) void expose(
      Object& object, const ExposeOptions& options = {}) const {
    expose_method<M>(std::shared_ptr<Object>(std::shared_ptr<void>(), &object), options);
  }

  /// Lets peers call anything callable (with one call operator, which may run on several threads at
  /// once) by a name. A Batcher is such a callable; it then runs on this node's workers and clock.
  template <class Callable>
  void expose(std::string name, Callable callable, const ExposeOptions& options = {}) const {
    using Traits = detail::FunctionTraits<Callable>;
    ExposeOptions how = options;
    if constexpr (detail::ToldOfHost<Callable>) {
      detail::check_gathering(name, how);
      callable.exposed_on(host(name, std::exchange(how.exclusive, nullptr)));
      how.short_handler = true;
    }
    if constexpr (detail::takes_temporaries<Traits>()) {
      expose_function(std::make_shared<detail::TypedFunction<Callable, Traits>>(
          std::move(name), std::move(callable), std::move(how)));
    }
  }

  // --- objects behind remote references: defined in batchrpc/node/exposing_objects.hpp

  /// The same for a function of many signatures. For the library's other parts, as
  /// expose_operators() of batchrpc::torch.
  void expose(std::shared_ptr<detail::FunctionFamily> family) const;

  /// Lets peers create objects: `node.expose_class<ParameterServer(Config)>()` names a class and
  /// one of its constructors. Where the class can travel, `RRef::to_here()` works as well. Again,
  /// it changes nothing; throws InvalidArgument when another constructor of the class is exposed.
  ///
  /// `expose_class<Adam(Config), Optimizer>()` has its objects be used as an Optimizer, too: on an
  /// RRef<Optimizer>, and by the methods of that class.
  template <class Constructor, class... Bases>
  void expose_class() const;
  /// Lets peers create an `Interface`, of which they know no more than that: `T(Params...)` is the
  /// class and the constructor that they get. One for each interface; else as expose_class.
  template <class Interface, class Constructor>
  void expose_implementation() const;
  /// Lets peers create objects by a function, or by a method of an object behind an RRef, which
  /// returns the object, a shared_ptr or unique_ptr to it, or a Future of these:
  /// `node.create<&open_store>(peer, path)`, `store.create<&Store::table>(name)`. Again, it changes
  /// nothing. What is made of an object that could not be made fails with that one's error; a null
  /// pointer is a failure, too. Throws ShutDown.
  template <auto F>
  void expose_factory() const;
  /// Takes expose_class back: later calls of create() and to_here() get NotFound; objects stay, and
  /// so do methods, which unexpose() takes back. Returns whether the class was exposed.
  template <class T>
  bool unexpose_class() const;

  /// Lets peers call the method `M` of objects that they refer to by an RRef. Again, it changes
  /// nothing; throws InvalidArgument when another overload is exposed.
  ///
  /// `M` may be a member that is a Batcher: then calls by all of the object's handles gather in it,
  /// `handle.call<&ParameterServer::update>(gradients)`, and the object lives until they are
  /// answered.
  template <auto M>
  requires std::is_member_pointer_v<decltype(M)>
  void expose() const;
  /// The same under a name, for callers in other programs: `handle.call<int(int)>("add", 1)`.
  template <auto M>
  requires std::is_member_pointer_v<decltype(M)>
  void expose_as(std::string_view name) const;

  /// Creates an object on a peer that has exposed its class. Returns at once; methods may be called
  /// on the handle at once. `node.create<ParameterServer(Config)>(peer, path)` names the
  /// constructor as expose_class does, and the arguments are converted to its types;
  /// `node.create<ParameterServer>(peer, config)` takes the arguments' own types to be its types.
  ///
  /// Calls on the handle fail with what the creation failed with: RemoteError (the constructor
  /// threw, or the decoding of an argument), NotFound (the class is not exposed, or the peer not
  /// known), BadSignature (another constructor is), PeerLost, NotSent or TimedOut. Throws ShutDown,
  /// NotFound of a rank that nobody has, and what encoding the arguments throws.
  template <class Constructor, class... Args>
  RRef<typename detail::ConstructorTraits<Constructor>::Class> create(PeerRef peer,
                                                                      Args&&... args) const;

  /// The same by a function that the peer has exposed with expose_factory.
  template <auto F, class... Args>
  auto create(PeerRef peer, Args&&... args) const;

  /// A handle to an object of this process. To be called once an object, since methods of handles
  /// of two calls may run at once. Throws InvalidArgument for a null pointer, and ShutDown.
  template <class T>
  RRef<T> own(std::shared_ptr<T> object) const;

  /// What objects there are here, by whom they are held, and whose objects this node holds; for
  /// people and tests. Takes time with the number of objects.
  [[nodiscard]] RRefReport rrefs() const;

  /// Takes a function back, and the method of that name of objects behind RRefs: later calls get
  /// NotFound, those under way finish; what they refer to lives so long. Returns whether there was
  /// one.
  bool unexpose(std::string_view name) const;
  /// The same for what was exposed under its qualified name.
  template <auto F>
  bool unexpose() const {
    return unexpose(detail::function_name<F>());
  }

  /// The Cap'n Proto schema of an exposed function's arguments (struct Arguments) and result
  /// (struct Result), for `capnp decode`; also of a method behind RRefs, whose first argument is
  /// the object's id, and of a class: of its constructor, which the object's id goes before. Throws
  /// NotFound.
  [[nodiscard]] std::string schema(std::string_view name) const;
  /// The names of what is exposed, in order: functions, methods, classes.
  [[nodiscard]] std::vector<std::string> functions() const;

  // --- the group

  /// The other nodes that this one knows, in order of their names; lost ones included.
  [[nodiscard]] std::vector<PeerInfo> peers() const;
  /// Ready when a peer of that name is there, at once for the node's own: it has joined, and is not
  /// PeerState::lost. A lost peer is there again when the group tells of it or a connection to it
  /// is made, which is tried meanwhile if only this node has lost it; one that was restarted when
  /// it has joined again. Fails with TimedOut.
  [[nodiscard]] Future<PeerInfo> wait_for_peer(std::string name,
                                               Duration timeout = std::chrono::seconds(60)) const;
  /// Calls `handler` at every change from now on, on whichever thread noticed; it must not block.
  /// The number takes it back.
  std::uint64_t on_membership(std::function<void(const MembershipChange&)> handler) const;
  /// Takes a handler back. One that another thread is running may go on running after this has
  /// returned: let it share what it refers to.
  void forget_membership_handler(std::uint64_t number) const;

  /// What the node has done since it was made, and has under way: counters and histograms of it,
  /// its peers, functions, batchers and objects, and its last errors (docs/metrics.md). They are
  /// always counted; to ask for them takes time with the number of these.
  [[nodiscard]] NodeMetrics metrics() const;

  // --- life

  /// Refuses new calls, lets those under way finish until the time is over, tells the others (for
  /// as long, a second at most), and ends the node.
  /// Returns what was not finished: "worker1: add (3 calls)" of its own calls, which unless their
  /// answers still come end as ShutDown; "4 calls of client, still being answered here: step (3
  /// calls), sum; of these 2 have not begun" of others'; and "client holds 3 RRefs to Counter,
  /// since 12 s". Those calls that still wait then are answered with ShutDown, and have not run.
  /// Idempotent. A callback may do it; in a handler of this node,
  /// or another task of its workers, it would wait for itself and throws InvalidArgument. What
  /// other tasks of an embedder's context throw meanwhile comes out of the context's run(),
  /// afterwards.
  std::vector<std::string> shutdown(Duration timeout);

  /// Runs tasks where handlers run; for `then(executor, f)` and batchers.
  [[nodiscard]] std::shared_ptr<Executor> workers() const;

  /// What a callable that is exposed here, under that name, may use.
  [[nodiscard]] std::shared_ptr<Host> host(std::string exposed_as = {},
                                           std::shared_ptr<AsyncMutex> exclusive = nullptr) const;

  /// For parts of the library.
  [[nodiscard]] const std::shared_ptr<NodeCore>& core() const {
    static_cast<void>(live_core());
    return core_;
  }
  /// For parts of the library that depend on calls alone.
  [[nodiscard]] std::shared_ptr<LocalNode> local_node() const;
  /// For parts of the library: calls `use` with a handle, whose end is not the node's.
  static void visit(const std::shared_ptr<NodeCore>& core,
                    const std::function<void(const Node&)>& use);
  /// For parts of the library: sends a call that is encoded already.
  void submit(PeerRef peer, const detail::FunctionKey& function, detail::OutgoingOptions&& options,
              Encoder& encoder, detail::ReplyHandler&& handler) const;

  /// For parts of the library: what the options of a call that is made now mean.
  [[nodiscard]] detail::OutgoingOptions outgoing(const CallOptions& options) const;

 private:
  explicit Node(std::shared_ptr<NodeCore> core);

  template <auto F>
  static constexpr detail::FunctionKey key() {
    using Traits = detail::FunctionTraits<decltype(F)>;
    using Signature = detail::CallSignature<typename Traits::Result, typename Traits::Arguments>;
    constexpr detail::FunctionKey kKey =
        detail::function_key(detail::function_name<F>(), Signature::text());
    return kKey;
  }
  template <class Traits>
  static detail::FunctionKey key(std::string_view name) {
    using Signature = detail::CallSignature<typename Traits::Result, typename Traits::Arguments>;
    return detail::function_key(name, Signature::text());
  }

  auto submitter(PeerRef peer) const {
    return [this, peer](const detail::FunctionKey& function, detail::OutgoingOptions&& options,
                        Encoder& encoder, detail::ReplyHandler&& handler) {
      submit(peer, function, std::move(options), encoder, std::move(handler));
    };
  }

  template <class R, class... Params, class... Args>
  Future<detail::Received<R>> call_typed(const detail::FunctionKey& function,
                                         const CallOptions& options, PeerRef peer,
                                         const std::tuple<Params...>* /*types*/,
                                         Args&&... args) const {
    detail::Takes<Params...>::template check<Args...>();
    return detail::send_call<R, Params...>(submitter(peer), function, outgoing(options),
                                           std::forward<Args>(args)...);
  }

  template <class... Params, class... Args>
  void notify_typed(const detail::FunctionKey& function, PeerRef peer,
                    const std::tuple<Params...>* /*types*/, Args&&... args) const {
    detail::Takes<Params...>::template check<Args...>();
    detail::send_notification<Params...>(submitter(peer), function, outgoing(CallOptions{}),
                                         std::forward<Args>(args)...);
  }

  template <class R, class Peers, class... Params, class... Args>
  auto call_all_typed(const detail::FunctionKey& function, const CallOptions& options,
                      const Peers& peers, const std::tuple<Params...>* /*types*/,
                      const Args&... args) const {
    detail::Takes<Params...>::template check<const Args&...>();
    using Received = detail::Received<R>;
    std::vector<Future<Received>> futures;
    const detail::EncoderLease encoded;
    bool usable = false;
    for (const auto& peer : peers) {
      try {
        if (!usable) {
          (*encoded).reset(wire::kEnvelopeWords);
          encode_struct<Params...>(*encoded, wire::kBodyPointer, args...);
          usable = !(*encoded).one_use();
        }
        const detail::EncoderLease copy;
        (*copy).words() = (*encoded).words();
        (*copy).payloads() = (*encoded).payloads();
        (*copy).delivery_hooks() = std::move((*encoded).delivery_hooks());
        detail::Pending<Received> pending = detail::wait_for_result<R>();
        submit(peer, function, outgoing(options), *copy, std::move(pending.handler));
        futures.push_back(std::move(pending.future));
      } catch (...) {
        futures.push_back(make_failed_future<Received>(std::current_exception()));
      }
    }
    return futures;
  }

  template <auto M, class Object>
  void expose_method(std::shared_ptr<Object> object, const ExposeOptions& options) const {
    using Traits = detail::FunctionTraits<decltype(M)>;
    const auto bound = [object = std::move(object)]<class... A>(A&&... args) {
      return ((*object).*M)(std::forward<A>(args)...);
    };
    if constexpr (detail::takes_temporaries<Traits>()) {
      expose_function(
          std::make_shared<detail::TypedFunction<std::decay_t<decltype(bound)>, Traits>>(
              std::string(detail::function_name<M>()), bound, options));
    }
  }

  void expose_function(std::shared_ptr<detail::ExposedFunction> function) const;
  // A function of the library's own; exposing it again changes nothing, but another signature is
  // refused. Always short: it only queues.
  template <class Callable>
  void expose_reserved(std::string name, Callable callable) const {
    using Traits = detail::FunctionTraits<Callable>;
    add_reserved(std::make_shared<detail::TypedFunction<Callable, Traits>>(
        std::move(name), std::move(callable), ExposeOptions{.short_handler = true}));
  }
  void add_reserved(std::shared_ptr<detail::ExposedFunction> function) const;
  // Of remote references: rref.hpp.
  template <class Named, class T, class... Params>
  void expose_creation(const std::tuple<Params...>* types) const;
  template <class T, class Base>
  void allow_as() const;
  template <class T, class... Params, class... Args>
  RRef<T> create_by(const std::string& name, std::string_view maker, PeerRef peer,
                    const std::tuple<Params...>* types, Args&&... args) const;
  bool remove_reserved(std::string_view name) const;
  [[nodiscard]] std::string peer_name(PeerRef peer) const;
  [[nodiscard]] std::string peer_to_call(PeerRef peer, const detail::FunctionKey& function) const;
  [[nodiscard]] NodeCore& live_core() const;  // throws InvalidArgument when moved from

  std::shared_ptr<NodeCore> core_{};
};

}  // namespace batchrpc
