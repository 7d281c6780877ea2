#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"
#include "wire/frame.hpp"

// What travels with a call beside its arguments: CallOptions::metadata and trace.
namespace batchrpc {
namespace call_metadata_test {

using namespace std::chrono_literals;

using Pair = test::NodePair;

// The metadata of the call that is being answered: "key=value;".
std::string shown_metadata() {
  std::string text;
  for (const auto& [key, value] : CallContext::current()->metadata())
    text += key + "=" + value + ";";
  return text;
}
std::string trace() {
  const TraceContext trace = CallContext::current()->trace();
  return trace.valid() ? trace.traceparent() : "none";
}

constexpr const char* kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST_CASE("metadata arrives in its order, and is asked for by key") {
  Pair pair;
  pair.b.expose("shown_metadata", shown_metadata);
  pair.b.expose("user", [] {
    return std::string(CallContext::current()->metadata("user").value_or("nobody"));
  });
  const MetadataEntry entries[] = {{"user", "ada"}, {"empty", ""}, {"user", "second"}};
  CHECK(pair.a.peer("b").with({.metadata = entries}).call<std::string()>("shown_metadata").get() ==
        "user=ada;empty=;user=second;");
  CHECK(pair.a.peer("b").with({.metadata = entries}).call<std::string()>("user").get() == "ada");
  CHECK(pair.a.call<std::string()>("b", "user").get() == "nobody");
}

TEST_CASE("metadata may hold any bytes, and is copied when the call is made") {
  Pair pair;
  pair.b.expose("shown_metadata", shown_metadata);
  std::string value("a\0\xff", 3);
  const MetadataEntry entries[] = {{"key", value}};
  auto answer = pair.a.peer("b").with({.metadata = entries}).call<std::string()>("shown_metadata");
  value.assign("xxx");
  CHECK(std::move(answer).get() == std::string("key=a\0\xff;", 8));
}

TEST_CASE("metadata goes with notifications of retried calls and calls to all, too") {
  Pair pair;
  pair.b.expose("shown_metadata", shown_metadata);
  const MetadataEntry entries[] = {{"k", "v"}};
  const CallOptions options{.retry = {.attempts = 3}, .metadata = entries};
  CHECK(pair.a.peer("b").with(options).call<std::string()>("shown_metadata").get() == "k=v;");
  const std::vector<std::string> peers{"b"};
  auto all = pair.a.each(peers)
                 .with(CallOptions{.metadata = entries})
                 .call<std::string()>("shown_metadata");
  CHECK(std::move(all.at(0)).get() == "k=v;");
}

TEST_CASE("a handler's calls take its metadata along when they are asked to") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("shown_metadata", shown_metadata);
  for (const bool inherit : {true, false}) {
    pair.b.expose("nested", [&]() -> Future<std::string> {
      const MetadataEntry own[] = {{"user", "b"}, {"step", "2"}};
      return pair.b.peer("c")
          .with({.metadata = own, .inherit_metadata = inherit})
          .call<std::string()>("shown_metadata");
    });
    const MetadataEntry entries[] = {{"user", "a"}, {"tenant", "t1"}};
    CHECK(pair.a.peer("b").with({.metadata = entries}).call<std::string()>("nested").get() ==
          (inherit ? "user=b;step=2;tenant=t1;" : "user=b;step=2;"));
    pair.b.unexpose("nested");
  }
}

TEST_CASE("metadata is inherited as far as there is room, so that it makes no call fail") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("count", [] { return static_cast<int>(CallContext::current()->metadata().size()); });
  pair.b.expose("nested", [&]() -> Future<int> {
    const MetadataEntry own[] = {{"own", "1"}};
    return pair.b.peer("c").with({.metadata = own, .inherit_metadata = true}).call<int()>("count");
  });
  std::vector<std::string> keys;
  std::vector<MetadataEntry> most;
  for (std::size_t i = 0; i < wire::kMaxMetadata; ++i)
    keys.push_back("key" + std::to_string(i));
  for (const std::string& key : keys)
    most.push_back({key, ""});
  CHECK(pair.a.peer("b").with({.metadata = most}).call<int()>("nested").get() ==
        static_cast<int>(wire::kMaxMetadata));
}

TEST_CASE("too much metadata is refused where the call is made, and nothing is sent") {
  Pair pair;
  int ran = 0;
  pair.b.expose("count", [&] { ++ran; });
  const std::vector<MetadataEntry> many(wire::kMaxMetadata + 1, MetadataEntry{"k", "v"});
  const std::string large(wire::kMaxMetadataBytes, 'x');
  const MetadataEntry too_large[] = {{"k", large}};
  const MetadataEntry unnamed[] = {{"", "v"}};
  const auto refused = [&](std::span<const MetadataEntry> metadata) {
    const auto result =
        test::outcome(pair.a.peer("b").with({.metadata = metadata}).call<void()>("count"));
    REQUIRE_FALSE(result);
    CHECK(result.code() == ErrorCode::invalid_argument);
    CHECK(describe(result.error()).find("CallOptions::metadata") != std::string::npos);
  };
  refused(many);
  refused(too_large);
  refused(unnamed);
  CHECK(ran == 0);
  const std::vector<MetadataEntry> most(wire::kMaxMetadata, MetadataEntry{"k", "v"});
  pair.a.peer("b").with({.metadata = most}).call<void()>("count").get();
  CHECK(ran == 1);
}

TEST_CASE("a call has no trace unless one is given, and goes on with one that is") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("trace", trace);
  pair.b.expose("trace", trace);
  pair.b.expose("nested", [&] { return pair.b.call<std::string()>("c", "trace"); });
  CHECK(pair.a.call<std::string()>("b", "trace").get() == "none");
  const TraceContext parent = *TraceContext::parse(kParent);
  CHECK(pair.a.peer("b").with({.trace = parent}).call<std::string()>("trace").get() == kParent);
  // Nobody records: those on the way hand on what they were given.
  CHECK(pair.a.peer("b").with({.trace = parent}).call<std::string()>("nested").get() == kParent);
}

TEST_CASE("the trace outlives a suspension of the handler") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("trace", trace);
  pair.b.expose("later", [&]() -> Future<std::string> {
    auto first = pair.b.call<std::string()>("c", "trace");
    std::string text = co_await std::move(first);
    auto second = pair.b.call<std::string()>("c", "trace");
    text += " " + co_await std::move(second);
    co_return text;
  });
  const TraceContext parent = *TraceContext::parse(kParent);
  CHECK(pair.a.peer("b").with({.trace = parent}).call<std::string()>("later").get() ==
        std::string(kParent) + " " + kParent);
}

TEST_CASE(
    "what a short handler sets in motion goes on with its trace, and is no part of the call") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("trace", trace);
  std::string seen;
  bool in_call = true;
  pair.b.expose(
      "short",
      [&] {
        pair.b.call<std::string()>("c", "trace").then([&](const std::string&) {
          in_call = CallContext::current() != nullptr;
          pair.b.call<std::string()>("c", "trace").then([&](std::string text) { seen = text; });
        });
      },
      {.short_handler = true});
  const TraceContext parent = *TraceContext::parse(kParent);
  pair.a.peer("b").with({.timeout = 10ms, .trace = parent}).call<void()>("short").get();
  pair.world.run_for(1s);
  CHECK(seen == kParent);
  CHECK_FALSE(in_call);
}

}  // namespace call_metadata_test
}  // namespace batchrpc
