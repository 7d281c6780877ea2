#include "batchrpc/trace/trace_context.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace batchrpc {
namespace trace_context_test {

// The example of the recommendation.
const std::string kExample = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

bool malformed(std::string_view text) { return !TraceContext::parse(text).has_value(); }

TEST_CASE("the example of W3C's recommendation is read, and written again") {
  const auto context = TraceContext::parse(kExample);
  REQUIRE(context);
  CHECK(context->valid());
  CHECK(context->trace_id[0] == 0x4b);
  CHECK(context->trace_id[15] == 0x36);
  CHECK(context->span_id[1] == 0xf0);
  CHECK(context->span_id[7] == 0xb7);
  CHECK(context->flags == 1);
  CHECK(context->traceparent() == kExample);
}

TEST_CASE("a context that is not recorded has flags of zero") {
  auto text = kExample;
  text.back() = '0';
  const auto context = TraceContext::parse(text);
  REQUIRE(context);
  CHECK(context->flags == 0);
  CHECK(context->traceparent() == text);
}

TEST_CASE("flags that level 1 does not know are not passed on") {
  auto text = kExample;
  text.replace(53, 2, "ff");
  const auto context = TraceContext::parse(text);
  REQUIRE(context);
  CHECK(context->traceparent() == kExample);
}

TEST_CASE("a context without ids is not valid") {
  TraceContext context;
  CHECK_FALSE(context.valid());
  context.trace_id[3] = 1;
  CHECK_FALSE(context.valid());
  context.span_id[7] = 1;
  CHECK(context.valid());
  context.trace_id[3] = 0;
  CHECK_FALSE(context.valid());
}

TEST_CASE("a traceparent with any character wrong is refused") {
  for (std::size_t i = 0; i < kExample.size(); ++i) {
    for (const char wrong : {'g', 'A', ' ', '/', ':', '`', '_', '\0'}) {
      auto text = kExample;
      text[i] = wrong;
      INFO(text);
      CHECK(malformed(text));
    }
    auto text = kExample;
    text[i] = text[i] == '-' ? '0' : '-';
    CHECK(malformed(text));
    CHECK(malformed(kExample.substr(0, i)));
  }
}

TEST_CASE("ids of zero are refused") {
  CHECK(malformed("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
  CHECK(malformed("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"));
}

TEST_CASE("version 00 has nothing more, and later ones only after a hyphen") {
  CHECK(malformed(kExample + "-"));
  CHECK(malformed(kExample + "-00"));
  auto later = kExample;
  later.replace(0, 2, "cc");
  CHECK_FALSE(malformed(later));
  CHECK_FALSE(malformed(later + "-"));
  CHECK_FALSE(malformed(later + "-what-the-future-will-be-like"));
  CHECK(malformed(later + ".what"));
  CHECK(malformed(later + "0"));
  CHECK(TraceContext::parse(later + "-more")->traceparent() == kExample);
}

TEST_CASE("version ff is refused") {
  auto text = kExample;
  text.replace(0, 2, "ff");
  CHECK(malformed(text));
  CHECK(malformed(text + "-more"));
}

TEST_CASE("what is written is read as the same") {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    TraceContext context;
    for (auto& byte : context.trace_id)
      byte = static_cast<std::uint8_t>(random());
    for (auto& byte : context.span_id)
      byte = static_cast<std::uint8_t>(random());
    context.flags = random() % 2;
    REQUIRE(TraceContext::parse(context.traceparent()) == context);
  }
}

}  // namespace trace_context_test
}  // namespace batchrpc
