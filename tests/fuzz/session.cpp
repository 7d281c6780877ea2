#include <memory>
#include <string>

#include "batchrpc/batchrpc.hpp"
#include "fuzz/conversation.hpp"
#include "fuzz/targets.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"

// A session of a stranger with a node over several connections, in virtual time: what it says of
// the session, and what it sends. Whatever comes, the node answers a healthy peer.
namespace batchrpc::fuzz {
namespace {

using namespace std::chrono_literals;
using test::define;
using test::RawPeer;
using wire::FrameKind;

NodeOptions quiet(const test::VirtualWorld& world) {
  NodeOptions options = world.options("root");
  options.logging.sink = [](LogLevel /*level*/, std::string_view /*line*/) {};
  options.limits.max_frame_bytes = 64 * 1024;
  options.limits.max_payload_bytes = 256 * 1024;
  return options;
}

}  // namespace

void session(Input input) {
  const test::VirtualWorld world;
  const Node root(quiet(world));
  root.expose("twice", [](int x) { return static_cast<int>(2 * std::int64_t{x}); },
              {.short_handler = true});
  root.expose("echo", [](Bytes bytes) { return bytes; });
  RawPeer healthy(world, "inproc://world", "healthy");
  healthy.say_hello("healthy", 5);
  healthy.send(define(0, "twice", signature<int, int>()));
  const auto wait_a_second = [&] {
    healthy.send(wire::plain_frame({.kind = FrameKind::ping}));  // it would be dead after five
    world.run_for(1s);
  };

  std::unique_ptr<RawPeer> before;
  std::unique_ptr<RawPeer> now;
  for (int connections = 0; connections < 16 && input.size() >= kBeginBytes; ++connections) {
    const auto byte = [&](std::size_t at) { return std::to_integer<std::size_t>(input[at]); };
    const std::size_t begin = byte(0);
    const std::size_t received = byte(1);
    const std::size_t size = std::min(byte(2) + 256 * byte(3), input.size() - kBeginBytes);
    const Input sent = input.subspan(kBeginBytes, size);
    input = input.subspan(kBeginBytes + size);
    before = (begin & kBeside) != 0 ? std::move(now) : nullptr;
    now.reset();
    if ((begin & kLater) != 0) wait_a_second();
    now = std::make_unique<RawPeer>(world);
    if (!now->connected()) continue;
    if ((begin & kHello) != 0) {
      now->send(wire::hello_frame({.incarnation = (begin & kLives) != 0 ? 79U : 77U,
                                   .session = (begin & kOther) != 0 ? 9U : 8U,
                                   .received = received,
                                   .resumed = (begin & kResumes) != 0,
                                   .joins = true,
                                   .name = "raw"}));
    }
    if ((begin & kDefines) != 0) {
      now->send(define(0, "twice", signature<int, int>()));
      now->send(define(1, "echo", signature<Bytes, Bytes>()));
      now->send(test::call_frame({.number = 0, .id = 3}, 4));
    }
    now->send(sent);
    (void)now->frames();  // all of it well-formed
  }
  for (int second = 0; second < 8; ++second)
    wait_a_second();
  healthy.frames();
  healthy.send(test::call_frame({.number = 0, .id = 9}, 21));
  const auto result = healthy.frame(FrameKind::result);
  require(result && wire::parse_frame(*result).header.id == 9,
          "a healthy peer's call is not answered");
}

}  // namespace batchrpc::fuzz
