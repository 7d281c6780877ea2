#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "batchrpc/profile.hpp"
#include "blob.hpp"
#include "fuzz/conversation.hpp"
#include "fuzz/targets.hpp"
#include "node/node_core.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"
#include "peers/member.hpp"
#include "rref/rref_messages.hpp"

// One side of a conversation with a node that has functions and objects, in virtual time: a
// stranger's, or that of a peer that has joined and is called as well. Whatever comes, the node
// answers a healthy peer, and its own calls end.

namespace batchrpc::fuzz {

class Thing {
 public:
  explicit Thing(std::string name) : name_(std::move(name)) {}
  std::size_t put(const Bytes& bytes, const std::map<std::string, int>& more) {
    return name_.size() + bytes.size() + more.size();
  }

 private:
  std::string name_;
};

namespace {

using namespace std::chrono_literals;
using test::call_frame;
using test::define;
using test::RawPeer;
using wire::FrameKind;
using More = std::map<std::string, int>;
using Object = detail::ObjectId;

/// The node, its healthy peer, and the one that the input speaks for.
class Scene {
 public:
  explicit Scene(unsigned manner) : manner_(manner) {
    root_.expose("twice", [](int x) { return static_cast<int>(2 * std::int64_t{x}); },
                 {.short_handler = true});
    root_.expose("size", [](const Bytes& bytes) { return bytes.size(); });
    root_.expose("shout", [](const std::string& text, const std::vector<std::string>& more,
                             std::optional<double> factor) {
      return text + std::to_string(more.size()) + (factor ? "!" : "?");
    });
    root_.expose("hold", [this] {
      held_.emplace_back();
      return held_.back().get_future();
    });
    root_.expose("worker", [](Bytes bytes) { return bytes; });
    root_.expose("blob", [](const test::Blob& blob) { return blob; });
    root_.expose_class<Thing(std::string)>();
    root_.expose<&Thing::put>();
    healthy_.say_hello("healthy", 5);
    healthy_.send(define(0, "twice", signature<int, int>()));
    if ((manner & kNarrow) != 0) {
      world_.network->set_link("raw", "root", {.capacity = 4096});
      raw_.emplace(world_);
    }
    if ((manner_ & kProfiled) != 0) profiler_.emplace(root_, ProfilerOptions{.answered = true});
  }

  void introduce() {
    raw_->say_hello("raw", 77);
    raw_->send(define(kJoin, "batchrpc.join", signature<JoinReply, Member, std::int32_t>()));
    raw_->send(define(kTwice, "twice", signature<int, int>()));
    raw_->send(define(kSize, "size", signature<std::size_t, Bytes>()));
    raw_->send(define(
        kShout, "shout",
        signature<std::string, std::string, std::vector<std::string>, std::optional<double>>()));
    raw_->send(define(kCreate, "batchrpc.create:batchrpc::fuzz::Thing",
                      signature<void, Object, std::string>()));
    raw_->send(define(kPut, "batchrpc.method:batchrpc::fuzz::Thing::put",
                      signature<std::size_t, Object, Bytes, More>()));
    raw_->send(define(kHold, "hold", signature<int>()));
    raw_->send(define(kUpdate, std::string(detail::kHold),
                      signature<void, std::vector<detail::HoldUpdate>>()));
    raw_->send(define(kWorker, "worker", signature<Bytes, Bytes>()));
    raw_->send(define(kBlob, "blob", signature<test::Blob, test::Blob>()));
    raw_->send(define(kArrived, std::string(detail::kArrived),
                      signature<void, std::vector<detail::Fork>>()));
    raw_->send(define(kAsk, std::string(detail::kAsk),
                      signature<std::vector<detail::Fork>, std::vector<detail::ForkQuestion>>()));
    raw_->send(define(kNone, std::string(detail::kNone),
                      signature<void, std::vector<detail::NoObject>>()));
    raw_->send(
        define(kAbandon, std::string(detail::kAbandon), signature<void, detail::NoObject>()));
    raw_->send(define(kReady, std::string(detail::kReady), signature<void, Object>()));
    Encoder encoder(wire::kEnvelopeWords);
    const Member member{
        .name = "raw", .incarnation = 77, .host = {}, .addresses = {"inproc://raw"}};
    encode_struct<Member, std::int32_t>(encoder, wire::kBodyPointer, member, 0);
    wire::finish_frame(encoder, {.kind = FrameKind::call, .id = 1});
    raw_->send(encoder.words());
    const auto names = root_.peers();
    require(names.size() == 1 && names[0].name == "raw", "it has not joined");
    require(detail::NodeAccess::core(root_)->incarnation() == kOwner,
            "it is of another incarnation");
    raw_->frames();
  }

  /// Calls of the node's; their ids go where `sent` has them as 1, 2 and 3.
  void call(std::vector<std::byte>& sent) {
    const CallOptions soon{.timeout = 3s};
    number_ = root_.peer("raw").with(soon).call<int(int)>("number", 4);
    bytes_ = root_.peer("raw").with(soon).call<Bytes(Bytes)>("bytes", Bytes::allocate(100'000));
    texts_ = root_.peer("raw").with(soon).call<std::vector<std::string>(std::string)>("texts", "a");
    world_.run_for(Duration::zero());
    std::vector<std::uint64_t> ids;
    for (const auto& words : raw_->frames()) {
      const auto header = wire::parse_frame(words).header;
      if (header.kind == FrameKind::call) ids.push_back(header.id);
    }
    for (const FramePlace& frame : frames_of(sent)) {
      std::vector<Word> words(frame.bytes / sizeof(Word));
      std::memcpy(words.data(), sent.data() + frame.at, frame.bytes);
      const std::uint64_t id = wire::id_of(std::as_bytes(std::span(words)));
      if (id == 0 || id > ids.size()) continue;
      wire::set_id(words, ids[id - 1]);
      std::memcpy(sent.data() + frame.at, words.data(), frame.bytes);
    }
  }

  void send(Input sent, unsigned piece) {
    std::minstd_rand random(piece + 1);
    while (!sent.empty()) {
      const std::size_t size = piece == 0 ? sent.size() : 1 + random() % (piece * piece);
      const Input now = sent.first(std::min(size, sent.size()));
      raw_->send(now);
      sent = sent.subspan(now.size());
      if ((manner_ & kReads) != 0) read();
      if (raw_->closed()) return;
    }
  }

  void end() {
    if ((manner_ & kBreaksOff) != 0) raw_.reset();
    held_.clear();
    for (int second = 0; second < 12; ++second) {  // the healthy one shows that it lives
      healthy_.send(wire::plain_frame({.kind = FrameKind::ping}));
      world_.run_for(1s);
    }
    require((!number_ || number_->ready()) && (!bytes_ || bytes_->ready()) &&
                (!texts_ || texts_->ready()),
            "a call of the node's has not ended");
    if (profiler_) {  // nothing that was told of the calls does harm
      (void)profiler_->key_averages().table();
      (void)chrome_trace(profiler_->recording());
    }
    healthy_.frames();
    healthy_.send(call_frame({.number = 0, .id = 9}, 21));
    const auto result = healthy_.frame(FrameKind::result);
    require(result && wire::parse_frame(*result).header.id == 9,
            "a healthy peer's call is not answered");
  }

 private:
  // All that the node sends is well-formed.
  void read() {
    for (const auto& words : raw_->frames()) {
      const auto frame = wire::parse_frame(words);
      if (frame.header.kind == FrameKind::error) (void)wire::read_error(frame);
      if (frame.header.kind == FrameKind::define) (void)wire::read_definition(frame);
    }
  }
  NodeOptions options() const {
    NodeOptions options = world_.options("root");
    options.logging.sink = [](LogLevel /*level*/, std::string_view /*line*/) {};
    options.limits.max_frame_bytes = 64 * 1024;
    options.limits.max_payload_bytes = 256 * 1024;
    return options;
  }

  const unsigned manner_;
  test::VirtualWorld world_;
  std::vector<Promise<int>> held_;
  Node root_{options()};
  RawPeer healthy_{world_, "inproc://world", "healthy"};
  std::optional<RawPeer> raw_{std::in_place, world_};
  std::optional<Profiler> profiler_;
  std::optional<Future<int>> number_;
  std::optional<Future<Bytes>> bytes_;
  std::optional<Future<std::vector<std::string>>> texts_;
};

}  // namespace

void connection(Input input) {
  if (input.size() < kControlBytes) return;
  const auto manner = std::to_integer<unsigned>(input[0]);
  const auto piece = std::to_integer<unsigned>(input[1]);
  input = input.subspan(kControlBytes);
  std::vector<std::byte> sent(input.begin(), input.end());
  Scene scene(manner);
  if ((manner & kIntroduced) != 0) {
    scene.introduce();
    if ((manner & kIsCalled) != 0) scene.call(sent);
  }
  scene.send(sent, piece);
  scene.end();
}

}  // namespace batchrpc::fuzz
