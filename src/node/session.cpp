#include "node/session.hpp"

#include <algorithm>
#include <map>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "node/output_scope.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kMaxFunctions = 65536;
constexpr std::size_t kMaxAssemblies = 4096;

ConnectionLimits limits_of(const NodeOptions& options) {
  ConnectionLimits limits;
  limits.frame_bytes = options.max_frame_bytes;
  return limits;
}

std::uint64_t assembly_key(std::uint64_t id, bool of_reply) { return id * 2 + (of_reply ? 1 : 0); }

}  // namespace

Session::Session(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
                 std::shared_ptr<WaitContext> context, std::string peer_name)
    : host_(std::move(host)),
      core_(host_->core()),
      loop_(std::move(loop)),
      connection_(
          std::make_shared<Connection>(loop_, std::move(context), limits_of(host_->options()))),
      expected_peer_(std::move(peer_name)) {}

Session::~Session() {
  if (timer_ != 0) loop_->cancel(timer_);
}

void Session::start(std::unique_ptr<Stream> stream, bool accepted) {
  accepted_ = accepted;
  connection_->start(std::move(stream), weak_from_this());
  if (!accepted) {
    said_hello_ = true;
    connection_->output().append_first(wire::hello_frame(host_->own_hello()));
    connection_->flush();
  }
}

// --- calls of ours
// -------------------------------------------------------------------------------------------

// What the peer would refuse is refused here, where the caller can be told.
void Session::check_size(Encoder& encoder, std::string_view what) const {
  const NodeOptions& options = host_->options();
  const std::uint64_t bytes = encoder.words().size() * sizeof(Word);
  std::uint64_t payloads = 0;
  for (const Bytes& payload : encoder.payloads())
    payloads += payload.size();
  if (bytes <= options.max_frame_bytes && payloads <= options.max_payload_bytes) return;
  throw InvalidArgument(std::string(what) + " is too large: " + std::to_string(bytes) +
                        " bytes and " + std::to_string(payloads) +
                        " bytes of payloads, the limits are " +
                        std::to_string(options.max_frame_bytes) + " and " +
                        std::to_string(options.max_payload_bytes) +
                        " (NodeOptions::max_frame_bytes, max_payload_bytes)");
}

void Session::submit(const detail::FunctionKey& function, detail::OutgoingOptions options,
                     Encoder& encoder, detail::ReplyHandler handler) {
  const NodeOptions& defaults = host_->options();
  const Duration timeout =
      options.timeout == Duration::zero() ? defaults.call_timeout : options.timeout;
  const bool waits_for_ever = timeout == Duration::max();
  const auto microseconds =
      std::chrono::ceil<std::chrono::microseconds>(waits_for_ever ? Duration::zero() : timeout);
  wire::finish_frame(encoder, {.kind = wire::FrameKind::call,
                               .flags = options.wants_reply ? std::uint16_t{0} : wire::kNoReply,
                               .value = static_cast<std::uint64_t>(microseconds.count())});
  check_size(encoder, function.name);
  PendingCall call{.handler = std::move(handler),
                   .deadline = waits_for_ever ? TimePoint::max() : loop_->now() + timeout,
                   .payload_target = std::move(options.payload_target)};
  bool at_once = false;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      const TimePoint deadline = call.deadline;
      const std::uint32_t number = number_of(function);
      call.function = number;
      wire::set_number(encoder.words(), number);
      std::uint64_t id = 0;
      if (options.wants_reply) {
        at_once = calls_.size() == 0;
        id = calls_.add(std::move(call));
        wire::set_id(encoder.words(), id);
      }
      const auto position =
          connection_->output().append(encoder.words(), id, false, std::move(encoder.payloads()));
      if (options.wants_reply) {
        calls_.find(id)->position = position;
        if (deadline < timer_at_) arm_timer(deadline);
      }
    }
  }
  if (call.handler) {  // not taken: closed, or no reply wanted
    detail::Reply reply;
    if (is_closed()) {
      reply.error = std::make_exception_ptr(
          NotSent("the connection to " + peer_name() + " has just broken: '" +
                  std::string(function.name) + "' was not sent; call again"));
    }
    call.handler(reply);
    if (reply.error) return;
  }
  if (OutputScope::defer(*connection_)) return;
  if (at_once) {
    connection_->flush();
  } else {
    connection_->flush_soon();
  }
}

// The number by which the peer knows the function; tells it first, if it does not.
std::uint32_t Session::number_of(const detail::FunctionKey& function) {
  const auto [at, added] =
      numbers_.try_emplace(function.hash, static_cast<std::uint32_t>(names_.size()));
  if (added) {
    names_.emplace_back(function.name);
    const auto frame = wire::definition_frame({.number = at->second,
                                               .name = std::string(function.name),
                                               .signature = std::string(function.signature)});
    connection_->output().append(frame, 0, false, {});
  }
  return at->second;
}

void Session::arm_timer(TimePoint deadline) {
  if (timer_ != 0) loop_->cancel(timer_);
  timer_at_ = deadline;
  timer_ = loop_->schedule(deadline, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->expire_calls();
  });
}

void Session::expire_calls() {
  std::vector<PendingCall> expired;
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    timer_ = 0;
    timer_at_ = TimePoint::max();
    if (closed_) return;
    expired = calls_.take_expired(loop_->now());
    for (const PendingCall& call : expired)
      names.push_back(names_[call.function]);
    if (calls_.earliest_deadline() != TimePoint::max()) arm_timer(calls_.earliest_deadline());
  }
  for (std::size_t i = 0; i < expired.size(); ++i) {
    const bool sent = expired[i].position < connection_->output().taken();
    detail::Reply reply;
    reply.error = std::make_exception_ptr(
        TimedOut("'" + names[i] + "' on " + peer_name() + " did not answer in time" +
                     (sent ? "; it may have run" : "; the peer was not reached, it never ran") +
                     " (CallOptions::timeout, NodeOptions::call_timeout)",
                 sent));
    expired[i].handler(reply);
  }
}

void Session::fail_calls(const MakeError& error) {
  std::vector<PendingCall> calls;
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    calls = calls_.take_all();
    for (const PendingCall& call : calls)
      names.push_back(names_[call.function]);
  }
  const OutputQueue::Position taken = connection_->output().taken();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    detail::Reply reply;
    reply.error = error(names[i], calls[i].position < taken);
    calls[i].handler(reply);
  }
}

// --- what comes in
// ---------------------------------------------------------------------------------------------

void Session::on_frame(const wire::FrameView& frame, std::vector<Bytes> inline_payloads) {
  using wire::FrameKind;
  const FrameKind kind = frame.header.kind;
  if (!is_open()) {
    if (kind == FrameKind::goodbye) {
      goodbye_ = wire::read_goodbye(frame);
    } else if (kind == FrameKind::hello) {
      handle_hello(frame);
    } else {
      throw BadMessage("the first frame of a connection is not a hello");
    }
    return;
  }
  switch (kind) {
    case FrameKind::define:
      handle_define(frame);
      return;
    case FrameKind::call:
      handle_call(frame, std::move(inline_payloads));
      return;
    case FrameKind::result:
      handle_result(frame, std::move(inline_payloads));
      return;
    case FrameKind::error:
      handle_error(frame);
      return;
    case FrameKind::ping:
      send(wire::plain_frame({.kind = FrameKind::pong}));
      return;
    case FrameKind::goodbye:
      goodbye_ = wire::read_goodbye(frame);
      return;
    case FrameKind::pong:
    case FrameKind::cancel:  // of a later minor version: may be ignored
    case FrameKind::acknowledge:
    case FrameKind::credit:
      return;
    case FrameKind::hello:
      throw BadMessage("a second hello");
    case FrameKind::chunk:
      break;  // goes to chunk_target()
  }
  throw BadMessage("a frame of the unknown kind " + std::to_string(static_cast<unsigned>(kind)));
}

void Session::handle_hello(const wire::FrameView& frame) {
  const wire::Hello hello = wire::read_hello(frame);
  try {
    if (hello.major != wire::kMajor) {
      throw JoinFailed("protocol version " + std::to_string(hello.major) + "." +
                       std::to_string(hello.minor) + " of " + hello.name +
                       " does not go with version " + std::to_string(wire::kMajor) + "." +
                       std::to_string(wire::kMinor) + " here");
    }
    if (hello.job != host_->options().job) {
      throw JoinFailed("the job is '" + hello.job + "' there and '" + host_->options().job +
                       "' here (NodeOptions::job)");
    }
    if (!expected_peer_.empty() && hello.name != expected_peer_) {
      throw NotFound("where " + expected_peer_ + " was, there is now " + hello.name);
    }
    host_->admit(*this, hello);
  } catch (const Error& error) {
    refuse(error);
    return;
  }
  if (!said_hello_) {
    said_hello_ = true;
    connection_->output().append_first(wire::hello_frame(host_->own_hello()));
  }
  open_.store(true, std::memory_order_release);
  connection_->open();
}

void Session::refuse(const Error& error) {
  say_goodbye(error.code(), error.what());
  goodbye_ =
      wire::Goodbye{.code = static_cast<std::uint16_t>(error.code()), .reason = error.what()};
  on_closed(error.what(), false);
}

void Session::handle_define(const wire::FrameView& frame) {
  wire::Definition definition = wire::read_definition(frame);
  if (definition.number != incoming_.size() || incoming_.size() >= kMaxFunctions) {
    throw BadMessage("function numbers do not come in order");
  }
  incoming_.push_back({std::move(definition.name), std::move(definition.signature), {}});
}

void Session::handle_call(const wire::FrameView& frame, std::vector<Bytes> payloads) {
  if (frame.header.number >= incoming_.size()) throw BadMessage("a call of an undefined function");
  if (payloads.size() == frame.payload_sizes.size()) {
    dispatch(frame, std::move(payloads));
  } else {
    assemble(frame);
  }
}

void Session::dispatch(const wire::FrameView& frame, std::vector<Bytes> payloads) {
  std::optional<TimePoint> deadline;
  if (frame.header.value != 0) {
    constexpr std::uint64_t kLongest = 1'000'000ULL * 60 * 60 * 24 * 365;
    deadline = loop_->now() +
               std::chrono::microseconds(std::min<std::uint64_t>(frame.header.value, kLongest));
  }
  host_->count_incoming(1);
  detail::IncomingCall call(*this, frame.header.id, (frame.header.flags & wire::kNoReply) == 0,
                            CallContext(peer_, deadline), frame.segment(), std::move(payloads));
  Incoming& incoming = incoming_[frame.header.number];
  auto function = incoming.function.lock();
  if (!function) {
    try {
      function = host_->resolve(incoming.name, incoming.signature);
      incoming.function = function;
    } catch (...) {
      if (!call.wants_reply()) {
        host_->log().warning("a notification from " + peer_name() +
                             " was dropped: " + describe(std::current_exception()));
      }
      call.fail(std::current_exception());
      return;
    }
  }
  if (function->options.short_handler) {
    const detail::CurrentNode current(core_);
    function->run(std::move(call));
    return;
  }
  call.keep();
  host_->run_on_worker(
      [core = core_, function = std::move(function), call = std::move(call)]() mutable {
        const detail::CurrentNode current(core);
        function->run(std::move(call));
      });
}

void Session::handle_result(const wire::FrameView& frame, std::vector<Bytes> payloads) {
  if (payloads.size() != frame.payload_sizes.size()) {
    assemble(frame);
    return;
  }
  std::optional<PendingCall> call;
  {
    const std::lock_guard lock(mutex_);
    call = calls_.take(frame.header.id);
  }
  if (!call) return;  // it has timed out
  detail::Reply reply{.error = nullptr, .segment = frame.segment(), .payloads = payloads};
  const detail::CurrentNode current(core_);
  call->handler(reply);
}

void Session::handle_error(const wire::FrameView& frame) {
  const wire::ErrorBody body = wire::read_error(frame);
  std::optional<PendingCall> call;
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    call = calls_.take(frame.header.id);
    if (call) name = names_[call->function];
  }
  if (!call) return;
  const auto code = static_cast<ErrorCode>(body.code);
  detail::Reply reply;
  if (code == ErrorCode::remote_error) {
    reply.error = std::make_exception_ptr(RemoteError(body.message, body.type, peer_name(), name));
  } else {
    reply.error = make_error(code, body.message, body.may_have_run);
  }
  call->handler(reply);
}

// --- large payloads
// ------------------------------------------------------------------------------------------------

// Makes room for the payloads of a call or reply. A reply's go where its caller wants them.
void Session::assemble(const wire::FrameView& frame) {
  const bool of_reply = frame.header.kind == wire::FrameKind::result;
  const std::uint64_t limit = host_->options().max_payload_bytes;
  std::uint64_t total = 0;
  for (const std::uint64_t size : frame.payload_sizes) {
    if (size > limit - total) {
      throw BadMessage("a call's payloads are larger than the limit of " + std::to_string(limit) +
                       " bytes (NodeOptions::max_payload_bytes)");
    }
    total += size;
  }
  if (assemblies_.size() >= kMaxAssemblies)
    throw BadMessage("too many calls with payloads at once");
  std::shared_ptr<detail::PayloadTarget> target;  // keeps the memory that it names
  if (of_reply) {
    const std::lock_guard lock(mutex_);
    PendingCall* call = calls_.find(frame.header.id);
    if (call == nullptr) return;  // has ended: its chunks are dropped
    target = std::move(call->payload_target);
  }
  const auto [at, added] = assemblies_.try_emplace(assembly_key(frame.header.id, of_reply));
  if (!added) throw BadMessage("two calls of one id");
  Assembly& assembly = at->second;
  assembly.words.assign(frame.words.begin(), frame.words.end());
  assembly.missing = total;
  assembly.received.resize(frame.payload_sizes.size());
  for (std::size_t i = 0; i < frame.payload_sizes.size(); ++i) {
    const std::size_t size = frame.payload_sizes[i];
    std::span<std::byte> room;
    if (target) room = (*target)(i, size);
    assembly.payloads.push_back(room.size() == size && size > 0 ? Bytes(target, room)
                                                                : Bytes::allocate(size));
  }
  if (total == 0) throw BadMessage("payloads without bytes are inline");
}

std::span<std::byte> Session::chunk_target(const wire::FrameHeader& chunk) {
  if (!is_open()) throw BadMessage("a chunk before the hello");
  const auto at = assemblies_.find(assembly_key(chunk.id, (chunk.flags & wire::kOfReply) != 0));
  if (at == assemblies_.end()) {
    if ((chunk.flags & wire::kOfReply) != 0) return {};
    throw BadMessage("a chunk of no call");
  }
  Assembly& assembly = at->second;
  if (chunk.number >= assembly.payloads.size() || chunk.value == 0) {
    throw BadMessage("a chunk of no payload");
  }
  const Bytes& payload = assembly.payloads[chunk.number];
  std::uint64_t& received = assembly.received[chunk.number];
  if (chunk.value > payload.size() - received) throw BadMessage("a chunk beyond its payload");
  const std::span room(payload.mutable_data() + received, chunk.value);
  received += chunk.value;
  return room;
}

void Session::on_chunk(const wire::FrameHeader& chunk) {
  const bool of_reply = (chunk.flags & wire::kOfReply) != 0;
  const auto at = assemblies_.find(assembly_key(chunk.id, of_reply));
  if (at == assemblies_.end()) return;
  at->second.missing -= chunk.value;
  if (at->second.missing > 0) return;
  Assembly whole = std::move(at->second);
  assemblies_.erase(at);
  const wire::FrameView frame = wire::parse_frame(whole.words);
  if (of_reply) {
    handle_result(frame, std::move(whole.payloads));
  } else {
    dispatch(frame, std::move(whole.payloads));
  }
}

// --- replies
// ---------------------------------------------------------------------------------------------------------

void Session::send_result(std::uint64_t call, Encoder& encoder) {
  wire::finish_frame(encoder, {.kind = wire::FrameKind::result, .id = call});
  check_size(encoder, "the result");
  connection_->output().append(encoder.words(), call, true, std::move(encoder.payloads()));
  if (!OutputScope::defer(*connection_)) connection_->flush();
}

void Session::send_error(std::uint64_t call, const std::exception_ptr& error) {
  send(wire::error_frame(call, error));
}

void Session::answered() { host_->count_incoming(-1); }

void Session::send(std::span<const Word> frame) {
  connection_->output().append(frame, 0, false, {});
  if (!OutputScope::defer(*connection_)) connection_->flush();
}

// --- life and end
// ------------------------------------------------------------------------------------------------------

int Session::tick() {
  if (connection_->take_heard()) {
    silent_ticks_ = 0;
  } else if (is_open()) {
    ++silent_ticks_;
    send(wire::plain_frame({.kind = wire::FrameKind::ping}));
  }
  connection_->output().trim();
  return silent_ticks_;
}

void Session::say_goodbye(ErrorCode code, const std::string& reason) {
  const auto frame =
      wire::goodbye_frame({.code = static_cast<std::uint16_t>(code), .reason = reason});
  if (is_open()) {
    connection_->output().append(frame, 0, false, {});
  } else {
    connection_->output().append_first(frame);
  }
  connection_->close();
}

void Session::on_closed(const std::string& why, bool protocol_error) {
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  assemblies_.clear();
  if (protocol_error) {
    host_->log().warning("dropped " + connection_->description() + ": " + why);
  }
  host_->session_closed(self, why);
}

bool Session::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::shared_ptr<const PeerIdentity> Session::peer() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

void Session::set_peer(std::shared_ptr<const PeerIdentity> peer) {
  const std::lock_guard lock(mutex_);
  peer_ = std::move(peer);
}

std::string Session::peer_name() const {
  const auto known = peer();
  if (known) return known->name;
  return expected_peer_.empty() ? connection_->description() : expected_peer_;
}

std::size_t Session::pending_calls() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

std::vector<std::string> Session::pending_functions() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::size_t> counts;
  calls_.for_each([&](const PendingCall& call) { ++counts[names_[call.function]]; });
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) {
    texts.push_back(name + (count > 1 ? " (" + std::to_string(count) + " calls)" : ""));
  }
  return texts;
}

}  // namespace batchrpc
