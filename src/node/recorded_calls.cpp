#include "node/recorded_calls.hpp"

#include <memory>
#include <string>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/exposed.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

void NodeCore::expose_recorded_calls() {
  using namespace recorded_calls;
  const auto expose = [this](std::string_view name, auto look) {
    const auto show = [weak = weak_from_this(), look](std::uint64_t store, std::uint64_t call) {
      const auto core = weak.lock();
      if (!core) throw ShutDown("the node is shut down");
      Page page;
      page.received = core->loop()->now().time_since_epoch().count();
      if (!core->options().profiling.enabled) {
        throw NotFound(
            "node " + core->name() +
            " does not share its recorded calls; set NodeOptions::profiling.enabled on that node");
      }
      const CallTracer::Shown shown = look(core->tracer(), CallTracer::Position{store, call});
      page.calls.reserve(shown.calls.size());
      for (const CallRecord& record : shown.calls)
        page.calls.push_back(wire::body_of(record));
      page.next_store = shown.next.store;
      page.next_call = shown.next.call;
      page.more = shown.more;
      page.left_out = shown.left_out;
      page.sampled = shown.sampled;
      page.finished = core->loop()->now().time_since_epoch().count();
      return page;
    };
    functions_.add(detail::make_exposed(std::string(name), show,
                                        ExposeOptions{.allow = [this](const PeerIdentity& caller) {
                                          return peers_->is_member(caller);
                                        }}));
  };
  expose(kRecorded, [](const CallTracer& tracer, CallTracer::Position from) {
    return tracer.shown(from, kPageEvents);
  });
  expose(kRest,
         [](const CallTracer& tracer, CallTracer::Position from) { return tracer.rest(from); });
}

}  // namespace batchrpc
