#include <memory>
#include <string>
#include <utility>

#include "node/node_core.hpp"
#include "reliability/reference_program.hpp"
#include "rref/rref_parts.hpp"

// What nodes tell each other of references comes again, at once or late, which is to change
// nothing.
namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;
using detail::RrefParts;

const PeerIdentity& caller() { return CallContext::current()->caller(); }

}  // namespace

// In place of the library's own function of that name: does the same, and has it told again.
template <class... Args, class Handle>
void ReferenceProgram::expose_repeated(const std::shared_ptr<Life>& life, std::string_view name,
                                       Handle handle) {
  NodeCore& core = *detail::NodeAccess::core(*life->node);
  auto function = [this, to = life->name, name, handle](const Args&... arguments) {
    handle(*detail::CurrentNode::get()->extension<RrefParts>(), arguments...);
    if (ending_ || !one_in(3)) return;
    const Duration late = one_in(2) ? Duration::zero() : some_time(one_in(2) ? 100ms : 20s);
    world_.after(late, [this, to, name, from = caller(), arguments...] {
      for (const auto& other : lives_) {
        if (ending_ || other->dead || other->paused || !other->node) continue;
        if (detail::NodeAccess::core(*other->node)->incarnation() != from.incarnation) continue;
        try {
          other->node->peer(to).template notify<void(Args...)>(name, arguments...);
          ++outcomes_["repeated"];
        } catch (const Error&) {  // it is gone
        }
      }
    });
  };
  using Function = decltype(function);
  core.functions().remove(name);
  core.expose(std::make_shared<detail::TypedFunction<Function, detail::FunctionTraits<Function>>>(
      std::string(name), std::move(function), ExposeOptions{.short_handler = true}));
}

void ReferenceProgram::repeat_messages(const std::shared_ptr<Life>& life) {
  using detail::Fork;
  using detail::HoldUpdate;
  using detail::NoObject;
  expose_repeated<std::vector<HoldUpdate>>(
      life, detail::kHold, [](RrefParts& parts, const std::vector<HoldUpdate>& updates) {
        parts.references->arrived(caller().name, parts.objects->update(caller(), updates));
      });
  expose_repeated<std::vector<Fork>>(life, detail::kArrived,
                                     [](RrefParts& parts, const std::vector<Fork>& forks) {
                                       parts.references->arrived(caller().name, forks);
                                     });
  expose_repeated<std::vector<NoObject>>(
      life, detail::kNone, [](RrefParts& parts, const std::vector<NoObject>& objects) {
        parts.references->none(caller(), objects);
      });
  expose_repeated<NoObject>(life, detail::kAbandon, [](RrefParts& parts, const NoObject& none) {
    parts.objects->abandon(none);
  });
}

}  // namespace batchrpc::test
