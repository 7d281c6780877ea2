#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/call/caller.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/mistake.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/peer_ref.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/node/membership.hpp"
#include "batchrpc/node/node_access.hpp"
#include "batchrpc/node/peer.hpp"

namespace batchrpc {

/// One participant: it exposes functions to its peers and calls theirs.
///
///     batchrpc::Node node({.name = "worker0", .rank = 0, .world_size = 2,
///                          .join = "tcp://127.0.0.1:29500"});
///     node.expose<&add>();
///     batchrpc::Future<int> sum = node.call<&add>("worker1", 1, 2);
///
/// The errors of a call are in its future (docs/errors.md). All functions are thread-safe, except
/// destruction, moving and shutdown(): one thread does these while no other uses the node.
/// docs/threading.md says where handlers and callbacks run. A moved-from node throws
/// InvalidArgument from every function except those marked noexcept; call() has the error in its
/// future.
class BATCHRPC_EXPORT Node {
 public:
  /// Joins its group, and blocks until it has joined. Throws InvalidArgument (an option is out of
  /// range) or JoinFailed (an address is in use; a name or rank is taken; ranks are missing at the
  /// timeout, which the error names).
  explicit Node(NodeOptions options);
  /// The same without blocking, for several nodes on one thread.
  [[nodiscard]] static Future<Node> start(NodeOptions options);

  /// The node continues under the new object. Handlers and calls in flight do not notice.
  Node(Node&&) noexcept;
  /// The same. The node that this object was before ends as by its destructor. Moving a node to
  /// itself changes nothing.
  Node& operator=(Node&&) noexcept;
  /// Ends the node as shutdown(NodeOptions::shutdown_timeout) does. On a thread of the node's own,
  /// the node ends soon afterwards on another thread.
  ~Node();

  /// Returns the name by which others call it; empty if moved from.
  [[nodiscard]] const std::string& name() const noexcept;
  /// Returns its rank in the group, chosen by the root if the options left it open; -1 if moved
  /// from.
  [[nodiscard]] int rank() const noexcept;
  /// Returns the number of nodes in the group; 0: the group is open, or the node was moved from.
  [[nodiscard]] int world_size() const noexcept;
  /// Returns the address where others reach it, such as "tcp://127.0.0.1:29500". The address of a
  /// root is what others may `join`, unless it listens everywhere (tcp://0.0.0.0:port). If the node
  /// has a TCP address, it is that one: also a root that was told to listen at a Unix socket
  /// listens on a loopback port, unless NodeOptions::transports excludes TCP.
  [[nodiscard]] std::string address() const;
  /// Returns the address of its status page (NodeOptions::status), such as
  /// "http://127.0.0.1:43211"; empty if there is none, or the node has ended.
  [[nodiscard]] std::string status_address() const;

  // --- calling

  /// Calls a function that the peer has exposed with expose<F>(). The arguments are converted to
  /// the function's parameter types and encoded before this returns. The future holds the
  /// function's result. If the result is a view, the future holds a copy: a std::string for a
  /// std::string_view, a std::vector<T> for a std::span<const T>.
  template <auto F, class... Args>
  requires detail::CallableWith<F, void, Args...>
  auto call(PeerRef peer, Args&&... args) const {
    return call_as<detail::FunctionTraits<decltype(F)>>(detail::key_of<F>(), peer,
                                                        std::forward<Args>(args)...);
  }
  /// Calls a function by name: `node.call<int(int, int)>("worker1", "add", 1, 2)`.
  template <class Function, class... Args>
  requires detail::CallableByName<Function, Args...>
  auto call(PeerRef peer, std::string_view function, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    return call_as<Traits>(detail::key_of<Traits>(function), peer, std::forward<Args>(args)...);
  }
  /// @cond
  template <auto F, class... Args,
            class Why = detail::WhyNotCalled<detail::TraitsOf<F>, void, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused call(PeerRef peer, Args&&... args)
  const;
  template <class Function, class... Args,
            class Why = detail::WhyNotCalled<detail::FunctionTraits<Function>, void, Args...>>
  requires(std::is_function_v<Function> && !std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused
      call(PeerRef peer, std::string_view function, Args&&... args)
  const;
  template <class... Args>
  BATCHRPC_NAME_THE_FUNCTION detail::Refused call(Args&&... args) const;
  /// @endcond

  /// Returns a handle of a peer, for calls with options, notifications and waits for credit:
  /// `node.peer("worker1").with({.timeout = 2s}).call<&add>(1, 2)`. Does not check that there is
  /// such a peer: its calls do.
  [[nodiscard]] Peer peer(PeerRef peer) const;
  /// Returns a handle of several peers, for one call to them all:
  /// `node.each({"worker1", "worker2"}).call<&train>(epoch)`. Takes a range of names, ranks or
  /// PeerInfos (such as peers(), which includes lost peers).
  template <class Range = std::initializer_list<PeerRef>>
  requires(!std::is_convertible_v<const Range&, PeerRef>) [[nodiscard]] Peers
      each(const Range& peers) const {
    Peers all = no_peers();
    for (const auto& peer : peers)
      all.peers_.emplace_back(PeerRef(peer));
    return all;
  }
  /// @cond
  template <class One>
  requires std::is_convertible_v<const One&, PeerRef>
  __attribute__((unavailable("each() takes a range of peers; use peer() for one peer"))) Peers each(
      const One& peer) const;
  /// @endcond

  /// Returns the timeout of calls that set none: NodeOptions::call_timeout, or what was set last.
  [[nodiscard]] Duration call_timeout() const;
  /// Sets it for later calls. Throws InvalidArgument unless it is positive.
  void set_call_timeout(Duration timeout) const;

  // --- exposing

  /// This node has exposed everything. From now on a call of another function fails with NotFound
  /// at once, and no longer waits for NodeOptions::expose_within. shutdown_together() implies this.
  void ready() const;

  /// Lets peers call the function `F` under its qualified name. Throws InvalidArgument if the name
  /// is taken.
  template <auto F>
  requires(!std::is_member_pointer_v<decltype(F)> &&
           detail::kExposable<detail::TraitsOf<F>>) void expose(const ExposeOptions& options = {})
      const {
    expose(std::string(detail::function_name<F>()), F, options);
  }
  /// @cond
  template <auto F, class Why = detail::WhyNotExposed<detail::TraitsOf<F>>>
  requires(!std::is_member_pointer_v<decltype(F)> && !std::is_void_v<Why>) BATCHRPC_NOT_EXPOSABLE
      void expose(const ExposeOptions& options = {}) const;
  template <auto F, detail::NameBehind<F> Name, class Why = mistake::the_name_comes_first>
  BATCHRPC_NOT_EXPOSABLE void expose(Name&& name, const ExposeOptions& options = {}) const;
  /// @endcond

  /// Lets peers call the method `M` of one object. The node shares an object that is given as a
  /// std::shared_ptr until unexpose(), or its own end, and until calls in flight have finished. An
  /// object that is given as an lvalue must outlive the node.
  template <auto M, class Object>
  requires(std::is_member_function_pointer_v<decltype(M)> &&
           !std::is_convertible_v<Object, std::string_view> &&
           detail::kExposable<detail::TraitsOf<M>>) void expose(Object&& object,
                                                                const ExposeOptions& options = {})
      const {
    using Class = std::remove_reference_t<Object>;
    if constexpr (detail::IsSharedPointer<std::remove_cv_t<Class>>::value) {
      expose_method<M>(std::shared_ptr(std::forward<Object>(object)), options);
    } else {
      static_assert(std::is_lvalue_reference_v<Object>,
                    "the object would be destroyed at once: give a std::shared_ptr to it, or an "
                    "object that outlives the node");
      expose_method<M>(std::shared_ptr<Class>(std::shared_ptr<void>(), &object), options);
    }
  }

  /// Lets peers call a callable by a name. It has one call operator, which may run on several
  /// threads at once. A Batcher is such a callable; it then uses this node's workers and clock.
  template <class Callable>
  requires detail::kExposable<detail::CallableTraits<Callable>>
  void expose(std::string name, Callable callable, const ExposeOptions& options = {}) const {
    ExposeOptions how = options;
    if constexpr (detail::ToldOfHost<Callable>) {
      detail::check_gathering(name, how);
      detail::HostedAccess::exposed_on(
          callable, detail::NodeAccess::host(*this, name, std::exchange(how.exclusive, nullptr)));
      how.short_handler = true;
    }
    expose_function(detail::make_exposed(std::move(name), std::move(callable), std::move(how)));
  }
  /// @cond
  template <class Callable, class Why = detail::WhyNotExposed<detail::CallableTraits<Callable>>>
  requires(!std::is_void_v<Why>) BATCHRPC_NOT_EXPOSABLE
      void expose(std::string name, Callable callable, const ExposeOptions& options = {}) const;
  /// @endcond

  /// Removes everything exposed under that name: a function, factory, class, or method of objects
  /// behind RRefs (see exposed_functions()). Later calls fail with NotFound. Calls in flight
  /// finish; what they refer to lives until then. Objects stay. Returns whether it found anything.
  bool unexpose(std::string_view name) const;
  /// The same for what was exposed under its qualified name.
  template <auto F>
  bool unexpose() const {
    return unexpose(detail::function_name<F>());
  }

  // --- objects behind RRefs: defined in batchrpc/node/exposing_objects.hpp

  /// Lets peers create objects: `node.expose_class<ParameterServer(Config)>()` names a class and
  /// one of its constructors. If the class is serializable, `RRef::to_here()` works as well. To
  /// expose it again changes nothing. Throws InvalidArgument if another constructor of the class is
  /// exposed.
  ///
  /// `expose_class<Adam(Config), Optimizer>()` also lets its objects be used as an Optimizer: by an
  /// RRef<Optimizer>, and by the methods of that class.
  ///
  /// `creators`: the nodes that may create objects; the same for the two functions below. Whoever
  /// has a handle may call the methods.
  template <class Constructor, class... Bases>
  requires std::is_void_v<detail::WhyNotConstructed<Constructor>>
  void expose_class(const Allow& creators = {}) const;
  /// Lets peers create an `Interface`, and know no more than that: `T(Params...)` is the class and
  /// the constructor that they get. An interface has one implementation. The rest is as for
  /// expose_class.
  template <class Interface, class Constructor>
  requires std::is_void_v<detail::WhyNotConstructed<Constructor>>
  void expose_implementation(const Allow& creators = {}) const;
  /// Lets peers create objects by a function, or by a method of an object behind an RRef. It
  /// returns the object, a shared_ptr or unique_ptr to it, or a Future of these:
  /// `node.create<&open_store>(peer, path)`, `store.create<&Store::table>(name)`. To expose it
  /// again changes nothing. If creating the parent object failed, the creation fails with the same
  /// error. A null pointer is a failure, too. Throws ShutDown.
  template <auto F>
  requires detail::kExposable<detail::FactoryTraits<F>>
  void expose_factory(const Allow& creators = {}) const;
  /// @cond
  template <class Constructor, class... Bases, class Why = detail::WhyNotConstructed<Constructor>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CLASS
      void expose_class(const Allow& creators = {}) const;
  template <class Interface, class Constructor, class Why = detail::WhyNotConstructed<Constructor>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CLASS
      void expose_implementation(const Allow& creators = {}) const;
  template <auto F, class Why = detail::WhyNotExposed<detail::FactoryTraits<F>>>
  requires(!std::is_void_v<Why>) BATCHRPC_NOT_EXPOSABLE
      void expose_factory(const Allow& creators = {}) const;
  /// @endcond

  /// Lets peers call the method `M` of objects behind RRefs. `name` is for callers in other
  /// programs, `handle.call<int(int)>("add", 1)`. To expose it again changes nothing. Throws
  /// InvalidArgument if another overload has the name. `M` may be a member that is a Batcher: then
  /// calls by all handles of the object gather in it, and the object lives until they are answered.
  template <auto M>
  requires detail::ExposableMethod<M, detail::FunctionTraits<decltype(M)>>
  void expose(std::string_view name) const;
  /// The same under the qualified name.
  template <auto M>
  requires detail::ExposableMethod<M, detail::TraitsOf<M>>
  void expose() const { expose<M>(detail::function_name<M>()); }
  /// @cond
  template <auto M, class... Rest,
            class Why = detail::WhyNotExposed<detail::MethodTraits<M, Rest...>>>
  requires(std::is_member_pointer_v<decltype(M)> && !std::is_void_v<Why>) BATCHRPC_NOT_EXPOSABLE
      void expose(Rest&&... rest) const;
  /// @endcond

  /// Creates an object on a peer that has exposed its class. Returns at once; methods may be called
  /// on the handle at once. `node.create<ParameterServer(Config)>(peer, path)` names the
  /// constructor as expose_class does, and converts the arguments to its types.
  /// `node.create<ParameterServer>(peer, config)` takes the types of the arguments as they are.
  ///
  /// If the creation fails, calls on the handle fail with its error: RemoteError (the constructor,
  /// or the decoding of an argument, threw), NotFound (the class is not exposed, or the peer not
  /// known), BadSignature (another constructor is exposed), PeerLost, NotSent or TimedOut. Throws
  /// ShutDown, NotFound for a rank that no node has, and what encoding the arguments throws.
  ///
  /// A creation that takes longer than its timeout (`node.peer(peer).with({.timeout = 10min})`, or
  /// the node's) has failed for this node: from then on calls on its handles fail with TimedOut. If
  /// the constructor still ends, the object lives until its last handle is gone.
  template <class Constructor, class... Args>
  requires detail::kCreates<Constructor, Args...>
  auto create(PeerRef peer, Args&&... args) const {
    return this->peer(peer).template create<Constructor>(std::forward<Args>(args)...);
  }
  /// The same by a function that the peer has exposed with expose_factory.
  template <auto F, class... Args>
  requires detail::CreatesBy<F, Args...>
  auto create(PeerRef peer, Args&&... args) const {
    return this->peer(peer).template create<F>(std::forward<Args>(args)...);
  }
  /// @cond
  template <class Constructor, class... Args,
            class Why = detail::WhyNotCreated<Constructor, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused
      create(PeerRef peer, Args&&... args)
  const;
  template <auto F, class... Args,
            class Why = detail::WhyNotCalled<detail::FunctionFactoryTraits<F>, void, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused
      create(PeerRef peer, Args&&... args)
  const;
  /// @endcond

  /// Returns a handle to an object of this process. Call it once per object: methods by handles of
  /// two calls may run at the same time. Throws InvalidArgument for a null pointer, and ShutDown.
  template <class T>
  RRef<T> own(std::shared_ptr<T> object) const;

  // --- the group

  /// Returns the other nodes that this one knows, sorted by name, including lost ones.
  [[nodiscard]] std::vector<PeerInfo> peers() const;
  /// Returns a future that is ready when a peer of that name has joined and is not
  /// PeerState::lost; at once for the node's own name. If only this node has lost the peer, the
  /// wait keeps trying to connect to it. A peer that was restarted is there when it has joined
  /// again. Fails with TimedOut. The timeout is as in CallOptions.
  [[nodiscard]] Future<PeerInfo> wait_for_peer(std::string name, Duration timeout = {}) const;
  /// Calls `handler` at every change from now on, on the thread that noticed the change. It must
  /// not block. It stays until the node ends, or until the subscription is cancelled.
  MembershipSubscription on_membership(std::function<void(const MembershipChange&)> handler) const;

  /// Returns the counters and histograms of the node, its peers, functions, batchers and objects,
  /// and its last errors (docs/metrics.md). The more of these there are, the longer it takes.
  [[nodiscard]] NodeMetrics metrics() const;

  // --- life

  /// Refuses new calls, lets calls in flight finish until the timeout, says goodbye to the others
  /// (for at most as long, and at most a second), and ends the node.
  ///
  /// Returns what did not finish:
  ///
  /// - "worker1: add (3 calls)": own calls, which end with ShutDown unless their answers still
  ///   arrive;
  /// - "4 calls from client, not yet answered: step (3 calls), sum; 2 of them have not started":
  ///   calls of others; those that have not started are answered with ShutDown;
  /// - "client holds 3 RRefs to Counter, since 12 s".
  ///
  /// Idempotent. Callbacks may call it. A handler of this node, or another task of its workers,
  /// would wait for itself, and gets InvalidArgument. An exception that another task of an
  /// embedder's context throws meanwhile leaves the context's run() afterwards.
  std::vector<std::string> shutdown(Duration timeout);

  /// Ends the whole group. Waits until every member has called this function and no call is under
  /// way between any of them. Then it shuts this node down. Until then the node continues to serve
  /// calls, and handlers may make more. So a worker that only serves calls needs no more than this:
  ///
  ///     batchrpc::Node node({.name = "worker1", .rank = 1, .world_size = 2, .join = "env://"});
  ///     node.expose<&step>();
  ///     node.shutdown_together();
  ///
  /// A call is under way until it is answered; a notification, until its handler has returned. Work
  /// of the program that is no call is not waited for. A node that makes a call every few
  /// milliseconds, for ever, keeps the group alive.
  ///
  /// The wait also ends at the timeout, and when the root is lost or leaves in another way. Other
  /// members that are lost or leave are not waited for, and not reported here. In an open group the
  /// members are those that have joined so far.
  ///
  /// Returns why the wait ended early, and what shutdown(NodeOptions::shutdown_timeout) returns,
  /// which takes that time more. Throws what shutdown() throws, and InvalidArgument while another
  /// call of it waits.
  std::vector<std::string> shutdown_together(Duration timeout = kNoTimeout);

  /// Returns the executor that runs handlers, for `then(executor, f)` and batchers.
  [[nodiscard]] std::shared_ptr<Executor> workers() const;

 private:
  friend struct detail::NodeAccess;

  explicit Node(std::shared_ptr<NodeCore> core);

  template <class Traits, class... Args>
  auto call_as(const detail::FunctionKey& function, PeerRef peer, Args&&... args) const {
    const auto submit = [this, peer](const detail::FunctionKey& key,
                                     detail::OutgoingOptions&& options, Encoder& encoder,
                                     detail::ReplyHandler&& handler) {
      detail::NodeAccess::submit(&live_core(), peer, key, std::move(options), encoder,
                                 std::move(handler));
    };
    return detail::call_as<Traits>(submit, function,
                                   detail::NodeAccess::outgoing(CallOptions{}, core_.get()),
                                   std::forward<Args>(args)...);
  }

  template <auto M, class Object>
  void expose_method(std::shared_ptr<Object> object, const ExposeOptions& options) const {
    using Traits = detail::FunctionTraits<decltype(M)>;
    const auto bound = [object = std::move(object)]<class... A>(A&&... args) {
      return ((*object).*M)(std::forward<A>(args)...);
    };
    expose_function(detail::make_exposed<std::decay_t<decltype(bound)>, Traits>(
        std::string(detail::function_name<M>()), bound, options));
  }

  void expose_function(std::shared_ptr<detail::ExposedFunction> function) const;
  [[nodiscard]] Peers no_peers() const;
  void refuse_to_end_itself(std::string_view function) const;
  [[nodiscard]] NodeCore& live_core() const;  // throws InvalidArgument if moved from

  std::shared_ptr<NodeCore> core_{};
};

}  // namespace batchrpc
