#include "batchrpc/node/node.hpp"

#include <thread>

#include "batchrpc/base/error.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

Node::Node(std::shared_ptr<NodeCore> core) : core_(std::move(core)) {}

Node::Node(NodeOptions options) : core_(NodeCore::start(std::move(options)).get()) {}

Future<Node> Node::start(NodeOptions options) {
  return NodeCore::start(std::move(options)).then([](std::shared_ptr<NodeCore> core) {
    return Node(std::move(core));
  });
}

Node Node::from_env(NodeOptions options) {
  options.join = "env://";
  return Node(std::move(options));
}

Node::Node(Node&&) noexcept = default;

Node& Node::operator=(Node&& other) noexcept {
  Node ended(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

Node::~Node() {
  if (!core_) return;
  const Duration timeout = core_->options().shutdown_timeout;
  if (core_->is_own_thread() && !core_->options().loop) {
    // A callback dropped the last handle: this thread cannot end itself.
    std::thread([core = std::move(core_), timeout] { core->shutdown(timeout); }).detach();
    return;
  }
  core_->shutdown(timeout);
}

const std::string& Node::name() const noexcept { return core_->name(); }
int Node::rank() const noexcept { return core_->rank(); }
int Node::world_size() const noexcept { return core_->options().world_size; }
std::string Node::address() const { return core_->address(); }

void Node::submit(PeerRef peer, const detail::FunctionKey& function,
                  detail::OutgoingOptions options, Encoder& encoder,
                  detail::ReplyHandler&& handler) const {
  if (!core_) throw InvalidArgument("this Node was moved from: it is no node any more");
  if (peer.by_rank()) {
    core_->submit(peer_name(peer), function, std::move(options), encoder, std::move(handler));
  } else {
    core_->submit(peer.name(), function, std::move(options), encoder, std::move(handler));
  }
}

std::string Node::peer_name(PeerRef peer) const {
  return peer.by_rank() ? core_->peers().name_of(peer.rank()) : std::string(peer.name());
}

void Node::add_reserved(std::shared_ptr<detail::ExposedFunction> function) const {
  if (core_->functions().find(function->name)) return;
  try {
    core_->expose(std::move(function));
  } catch (const InvalidArgument&) {  // another thread was faster
  }
}

void Node::expose_function(std::shared_ptr<detail::ExposedFunction> function) const {
  if (!core_) throw InvalidArgument("this Node was moved from: it is no node any more");
  if (function->name.starts_with("batchrpc.")) {
    throw InvalidArgument("expose: names that begin with 'batchrpc.' are the library's own");
  }
  core_->expose(std::move(function));
}

bool Node::unexpose(std::string_view name) const { return core_->functions().remove(name); }

std::string Node::schema(std::string_view name) const {
  const auto function = core_->functions().find(name);
  if (!function) {
    throw NotFound("no function '" + std::string(name) + "' is exposed on " + core_->name() + "; " +
                   suggest(name, core_->functions().names()));
  }
  return function->schema();
}

std::vector<std::string> Node::functions() const {
  auto names = core_->functions().names();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("batchrpc."); });
  return names;
}

std::vector<PeerInfo> Node::peers() const { return core_->peers().snapshot(); }

Future<PeerInfo> Node::wait_for_peer(std::string name, Duration timeout) const {
  return core_->wait_for_peer(std::move(name), timeout);
}

std::uint64_t Node::on_membership(std::function<void(const MembershipChange&)> handler) const {
  return core_->on_change([handler = std::move(handler)](const PeerChange& change) {
    if (change.kind == PeerChange::Kind::ended) return;
    handler({.joined = change.kind == PeerChange::Kind::joined,
             .peer = change.peer,
             .reason = change.reason});
  });
}

void Node::forget_membership_handler(std::uint64_t number) const { core_->forget_handler(number); }

std::vector<std::string> Node::shutdown(Duration timeout) { return core_->shutdown(timeout); }

std::shared_ptr<Executor> Node::workers() const { return core_->workers(); }

Host Node::host() const {
  const std::weak_ptr<NodeCore> weak = core_;
  Host host;
  host.workers = core_->workers();
  host.loop_tasks = core_->loop_tasks();
  host.loop = core_->loop();
  host.is_live = [weak](std::string_view peer) {
    const auto core = weak.lock();
    return core && core->peers().is_live(peer);
  };
  const auto notify = [weak](bool of_end) {
    return [weak, of_end](std::function<void()> handler) -> std::uint64_t {
      const auto core = weak.lock();
      if (!core) return 0;
      return core->on_change([of_end, handler = std::move(handler)](const PeerChange& change) {
        if ((change.kind == PeerChange::Kind::ended) == of_end) handler();
      });
    };
  };
  host.on_change = notify(false);
  host.on_end = notify(true);
  host.forget = [weak](std::uint64_t number) {
    if (const auto core = weak.lock()) core->forget_handler(number);
  };
  return host;
}

}  // namespace batchrpc
