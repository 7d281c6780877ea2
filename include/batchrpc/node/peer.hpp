#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/call_forms.hpp"
#include "batchrpc/call/caller.hpp"
#include "batchrpc/call/kept_options.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/peer_ref.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/node/node_access.hpp"

namespace batchrpc {

class Peers;
template <class T>
class RRef;

namespace detail {

struct PeerAccess;

template <class Argument>
struct PassedBy<Peers, Argument> {
  using type = const std::remove_reference_t<Argument>&;
};

/// The class, and the parameters, of a constructor T(Params...), or of a class alone.
template <class T>
struct ConstructorTraits {
  using Class = T;
};
template <class T, class... Params>
struct ConstructorTraits<T(Params...)> {
  using Class = T;
  using Arguments = std::tuple<std::remove_cvref_t<Params>...>;
};

// The traits of the function that creates an object by this constructor, or by one that takes the
// arguments as they are.
template <class Constructor, class... Args>
struct CreatorOf {
  using Traits = Signature<void, std::decay_t<Args>...>;
};
template <class T, class... Params, class... Args>
struct CreatorOf<T(Params...), Args...> {
  using Traits = Signature<void, Params...>;
};
template <class Constructor, class... Args>
inline constexpr bool kCreates =
    kFits<typename CreatorOf<Constructor, Args...>::Traits, void, Args...>;
template <class Constructor, class... Args>
using WhyNotCreated = WhyNotCalled<typename CreatorOf<Constructor, Args...>::Traits, void, Args...>;

/// A peer's name or rank, with the text that a PeerRef only refers to.
struct OwnedPeerRef {
  explicit OwnedPeerRef(PeerRef peer) : name(peer.name()), rank(peer.rank()) {}
  operator PeerRef() const {  // NOLINT: implicit
    return name.empty() ? PeerRef(rank) : PeerRef(name);
  }

  std::string name;
  int rank;
};

}  // namespace detail

/// A handle of one peer of a node, with the options of the calls that it makes. Made by Node::peer.
///
///     const batchrpc::Peer worker = node.peer("worker1").with({.timeout = 2s});
///     batchrpc::Future<int> sum = worker.call<&add>(1, 2);
///
/// It names the peer, as Node::call does, and looks it up at each call: a peer that was restarted
/// is reached by the same handle. It does not keep the node alive: after the node's end, calls fail
/// with ShutDown. It stays valid when the node is moved. Copies are independent. All functions are
/// const and thread-safe; only assignment is not.
///
/// notify() sends a call whose result nobody waits for. Of the options, `detached`, `metadata`,
/// `inherit_metadata` and `trace` apply to it.
class BATCHRPC_EXPORT Peer : public detail::CallForms<Peer>, public detail::NotifyForms<Peer> {
 public:
  /// Returns a handle of the same peer with these options, in place of those before. Copies what
  /// CallOptions::metadata refers to.
  [[nodiscard]] Peer with(const CallOptions& options) const {
    Peer other = *this;
    other.options_ = detail::KeptOptions(options);
    return other;
  }

  /// Creates an object on the peer, as Node::create does. Of the options, `timeout`, `metadata`,
  /// `inherit_metadata` and `trace` apply. A creation cannot be retried: throws InvalidArgument if
  /// `retry` asks for it. Defined in batchrpc/node/exposing_objects.hpp.
  /// @{
  template <class Constructor, class... Args>
  requires detail::kCreates<Constructor, Args...>
      RRef<typename detail::ConstructorTraits<Constructor>::Class> create(Args&&... args)
  const;
  template <auto F, class... Args>
  requires detail::CreatesBy<F, Args...>
  auto create(Args&&... args) const;
  /// @}
  /// @cond
  template <class Constructor, class... Args,
            class Why = detail::WhyNotCreated<Constructor, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused create(Args&&... args)
  const;
  template <auto F, class... Args,
            class Why = detail::WhyNotCalled<detail::FunctionFactoryTraits<F>, void, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused create(Args&&... args)
  const;
  /// @endcond

  /// Returns a future that is ready when the peer would accept a call with `bytes` bytes of
  /// arguments, payloads included, rather than refuse it with Overloaded
  /// (NodeOptions::limits.max_outstanding_bytes). Make the call in a continuation or at once: the
  /// room is not reserved for long.
  ///
  /// Waits for one peer are served in order. Those of handlers go before others, and wait until the
  /// peer has read, not until it has answered. Fails as a call would if the peer is not known or
  /// has not joined again since its restart; also if the peer is lost during the wait, and when
  /// this node ends. A peer that is lost already counts as having room, since a call tries its
  /// address; Node::wait_for_peer waits for its return. The timeout of the handle does not apply.
  [[nodiscard]] Future<void> wait_for_credit(std::size_t bytes) const;

 private:
  friend class Node;
  friend struct detail::PeerAccess;
  friend class detail::CallForms<Peer>;
  friend class detail::NotifyForms<Peer>;

  Peer(std::weak_ptr<NodeCore> core, PeerRef peer) : core_(std::move(core)), peer_(peer) {}

  template <auto F, class... Args>
  auto call_function(Args&&... args) const {
    return call_as<detail::FunctionTraits<decltype(F)>>(detail::key_of<F>(),
                                                        std::forward<Args>(args)...);
  }
  template <class Function, class... Args>
  auto call_named(std::string_view function, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    return call_as<Traits>(detail::key_of<Traits>(function), std::forward<Args>(args)...);
  }
  template <auto F, class... Args>
  void notify_function(Args&&... args) const {
    notify_as<detail::FunctionTraits<decltype(F)>>(detail::key_of<F>(),
                                                   std::forward<Args>(args)...);
  }
  template <class Function, class... Args>
  void notify_named(std::string_view function, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    notify_as<Traits>(detail::key_of<Traits>(function), std::forward<Args>(args)...);
  }

  template <class Traits, class... Args>
  auto call_as(const detail::FunctionKey& function, Args&&... args) const {
    const std::shared_ptr<NodeCore> core = core_.lock();
    return detail::call_as<Traits>(detail::SubmitTo{core.get(), peer_}, function,
                                   detail::NodeAccess::outgoing(options_.get(), core.get()),
                                   std::forward<Args>(args)...);
  }
  template <class Traits, class... Args>
  void notify_as(const detail::FunctionKey& function, Args&&... args) const {
    const std::shared_ptr<NodeCore> core = core_.lock();
    const CallOptions options{.detached = options_.get().detached,
                              .metadata = options_.get().metadata,
                              .inherit_metadata = options_.get().inherit_metadata,
                              .trace = options_.get().trace};
    detail::notify_as<Traits>(detail::SubmitTo{core.get(), peer_}, function,
                              detail::NodeAccess::outgoing(options, core.get()),
                              std::forward<Args>(args)...);
  }

  std::weak_ptr<NodeCore> core_;
  detail::OwnedPeerRef peer_;
  detail::KeptOptions options_{};
};

/// A handle of several peers, with the options of the calls that it makes. Made by Node::each. What
/// Peer says of its lifetime and of threads holds here, too.
///
///     std::vector<batchrpc::Future<float>> losses = node.each(workers).call<&train>(epoch);
///
/// The arguments are encoded once. A call returns one future per peer, in the order of the peers.
/// An error of one peer is in its future alone.
class BATCHRPC_EXPORT Peers : public detail::CallForms<Peers> {
 public:
  /// Returns a handle of the same peers with these options, as Peer::with does. A timeout holds for
  /// each of the calls.
  [[nodiscard]] Peers with(const CallOptions& options) const {
    Peers other = *this;
    other.options_ = detail::KeptOptions(options);
    return other;
  }

 private:
  friend class Node;
  friend class detail::CallForms<Peers>;

  explicit Peers(std::weak_ptr<NodeCore> core) : core_(std::move(core)) {}

  template <auto F, class... Args>
  auto call_function(const Args&... args) const {
    return call_as<detail::FunctionTraits<decltype(F)>>(detail::key_of<F>(), args...);
  }
  template <class Function, class... Args>
  auto call_named(std::string_view function, const Args&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    return call_as<Traits>(detail::key_of<Traits>(function), args...);
  }

  template <class Traits, class... Args>
  auto call_as(const detail::FunctionKey& function, const Args&... args) const {
    return call_typed<typename Traits::Result>(
        function, static_cast<typename Traits::Arguments*>(nullptr), args...);
  }

  template <class R, class... Params, class... Args>
  std::vector<Future<detail::Received<R>>> call_typed(const detail::FunctionKey& function,
                                                      const std::tuple<Params...>* /*types*/,
                                                      const Args&... args) const {
    const std::shared_ptr<NodeCore> core = core_.lock();
    std::vector<Future<detail::Received<R>>> futures;
    futures.reserve(peers_.size());
    const detail::EncoderLease encoded;
    bool usable = false;
    for (const detail::OwnedPeerRef& peer : peers_) {
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
        detail::Pending<detail::Received<R>> pending = detail::wait_for_result<R>();
        detail::NodeAccess::submit(core.get(), peer, function,
                                   detail::NodeAccess::outgoing(options_.get(), core.get()), *copy,
                                   std::move(pending.handler));
        futures.push_back(std::move(pending.future));
      } catch (...) {
        futures.push_back(make_failed_future<detail::Received<R>>(std::current_exception()));
      }
    }
    return futures;
  }

  std::weak_ptr<NodeCore> core_;
  std::vector<detail::OwnedPeerRef> peers_;
  detail::KeptOptions options_{};
};

namespace detail {

/// What the library's own parts use of a Peer, and programs do not.
struct PeerAccess {
  /// Returns the node; null: it has ended.
  [[nodiscard]] static std::shared_ptr<NodeCore> core(const Peer& peer) {
    return peer.core_.lock();
  }
  [[nodiscard]] static PeerRef ref(const Peer& peer) { return peer.peer_; }
  [[nodiscard]] static const CallOptions& options(const Peer& peer) noexcept {
    return peer.options_.get();
  }
};

}  // namespace detail

}  // namespace batchrpc
