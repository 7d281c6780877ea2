#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "rref/objects.hpp"

namespace context {

std::string who_calls() {
  const auto* const call = batchrpc::CallContext::current();
  if (call == nullptr) return "nobody";
  return call->caller().name + " as " + std::string(call->metadata("user").value_or("nobody"));
}

struct Visitor {
  std::string made_by = who_calls();
  std::string name() const { return made_by; }
  std::unique_ptr<Visitor> friend_of() const { return std::make_unique<Visitor>(); }
};

Visitor invite() { return {}; }
batchrpc::Future<std::shared_ptr<Visitor>> invite_later() { co_return std::make_shared<Visitor>(); }

}  // namespace context

namespace batchrpc {
namespace rref_context_test {

using context::Visitor;

TEST_CASE("constructors and factories know who calls them, as methods do") {
  test::VirtualWorld world;
  const Node owner = world.root("owner");
  owner.expose_class<Visitor()>();
  owner.expose_factory<&context::invite>();
  owner.expose_factory<&context::invite_later>();
  owner.expose_factory<&Visitor::friend_of>();
  owner.expose<&Visitor::name>();
  const Node caller = world.join("caller");
  caller.expose("relay", [&caller] {
    std::vector<std::string> names;
    const auto made = caller.create<Visitor()>("owner");
    names.push_back(made.call<&Visitor::name>().get());
    names.push_back(caller.create<&context::invite>("owner").call<&Visitor::name>().get());
    names.push_back(caller.create<&context::invite_later>("owner").call<&Visitor::name>().get());
    names.push_back(made.create<&Visitor::friend_of>().call<&Visitor::name>().get());
    return names;
  });
  CHECK(owner.call<std::vector<std::string>()>("caller", "relay").get() ==
        std::vector<std::string>(4, "caller as nobody"));
}

TEST_CASE("an object may be of a class template") {
  test::VirtualWorld world;
  const Node owner = world.root("owner");
  using Lines = std::vector<std::string>;
  owner.expose_class<Lines(std::size_t, std::string)>();
  const Node caller = world.join("caller");
  {
    const auto lines =
        caller.create<Lines(std::size_t, std::string)>("owner", std::size_t{3}, std::string("x"));
    CHECK(lines.to_here().get() == Lines(3, "x"));
    const RRef<Lines> own = caller.own(std::make_shared<Lines>(2, "y"));
    CHECK(*own.local().get() == Lines(2, "y"));
  }
  world.run_for(std::chrono::seconds(1));  // the owners learn that the handles are gone
  CHECK(detail::class_name<std::vector<int>>() == "std::vector<int>");
  CHECK(detail::class_name<Lines>() == "std::vector<std::basic_string<char>>");
}

}  // namespace rref_context_test
}  // namespace batchrpc
