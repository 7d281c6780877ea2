#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/wire/codec.hpp"
#include "batchrpc/wire/envelope.hpp"
#include "batchrpc/wire/signature.hpp"

/// The caller's end of a call, below the typed functions, and what both ends need for encoding. The
/// callee's end is running_call.hpp.
namespace batchrpc {
class LocalNode;
}  // namespace batchrpc

namespace batchrpc::detail {

/// Names a remote function on the wire. The views outlive the call of the function that they are
/// given to.
struct FunctionKey {
  std::string_view name;
  std::string_view signature;
  std::uint64_t hash = 0;    ///< of both
  std::string_view shown{};  ///< the name as people know it; empty: by `name` (shown_name)
};

constexpr FunctionKey function_key(std::string_view name, std::string_view signature,
                                   std::string_view shown = {}) {
  return {name, signature, signature_hash(name) * 31 + signature_hash(signature), shown};
}

class CallProbe;

/// What came back: an error, or a body to decode at kBodyPointer - 1 of the segment. Valid during
/// the handler only.
struct Reply {
  std::exception_ptr error;
  std::span<const Word> segment;
  std::span<const Bytes> payloads;
  CallProbe* probe = nullptr;  ///< of a call that is recorded
};

/// The caller is about to learn what became of its call, which is recorded: of several times the
/// first counts. `error`: what the reply turned out to be, if not a result.
BATCHRPC_EXPORT void end_record(CallProbe& probe, const std::exception_ptr& error) noexcept;

/// Who has submitted calls, and can take them back.
class Submitter {
 public:
  /// The call's receiver gets Cancelled, in here. False when it has ended. Thread-safe.
  virtual bool cancel_call(std::uint64_t id) noexcept = 0;

 protected:
  ~Submitter() = default;
};

/// A call that was submitted: who can take it back, and as what.
struct SubmittedCall {
  std::weak_ptr<Submitter> submitter{};
  std::uint64_t id = 0;

  /// Takes it back: its receiver gets Cancelled, in here. False when it has ended.
  BATCHRPC_EXPORT bool cancel() const noexcept;
};

/// Waits for the reply to one call.
class ReplyReceiver {
 public:
  /// Called once; the receiver may be gone afterwards.
  virtual void receive(Reply& reply) noexcept = 0;
  /// The call is submitted, and waits for its reply. Before receive(), at most once, under a lock.
  virtual void submitted(SubmittedCall /*call*/, bool /*cancel_when_dropped*/) noexcept {}

 protected:
  ~ReplyReceiver() = default;
};

/// The duty to tell a receiver what became of its call. One that is dropped says BrokenPromise.
class ReplyHandler {
 public:
  ReplyHandler() noexcept = default;
  explicit ReplyHandler(ReplyReceiver& receiver) noexcept : receiver_(&receiver) {}
  ReplyHandler(ReplyHandler&& other) noexcept
      : receiver_(std::exchange(other.receiver_, nullptr)) {}
  ReplyHandler& operator=(ReplyHandler&& other) noexcept {
    std::swap(receiver_, other.receiver_);
    return *this;
  }
  ~ReplyHandler() {
    if (receiver_ != nullptr) abandon();
  }

  explicit operator bool() const noexcept { return receiver_ != nullptr; }
  void operator()(Reply& reply) noexcept { std::exchange(receiver_, nullptr)->receive(reply); }
  [[nodiscard]] ReplyReceiver& receiver() const noexcept { return *receiver_; }

 private:
  BATCHRPC_EXPORT void abandon() noexcept;

  ReplyReceiver* receiver_ = nullptr;
};

/// Chooses the memory for payload `index`, of `size` bytes, of a reply or call. Empty, or of
/// another size, or what is thrown: the library allocates. Called at most once a payload, before
/// its bytes are read, on the driving thread, which it does not keep waiting. The payload owns it.
using PayloadTarget = UniqueFunction<std::span<std::byte>(std::size_t index, std::size_t size)>;

struct OutgoingOptions {
  Duration timeout{};  ///< zero: the node's default; Duration::max(): none
  bool wants_reply = true;
  bool detached = true;  ///< see CallOptions, where the default is another
  bool cancel_when_dropped = false;
  RetryOptions retry{};  ///< of a call that wants a reply
  std::unique_ptr<PayloadTarget> payload_target;
  std::shared_ptr<const void> kept;        ///< until the call has ended, if it wants a reply
  std::shared_ptr<OutgoingExtras> extras;  ///< null: nothing goes with it
};

/// An encoder of the calling thread's own, with the envelope reserved; may be used while another
/// is.
class BATCHRPC_EXPORT EncoderLease {
 public:
  EncoderLease();
  ~EncoderLease();
  EncoderLease(const EncoderLease&) = delete;
  EncoderLease& operator=(const EncoderLease&) = delete;
  Encoder& operator*() const noexcept { return *encoder_; }

 private:
  std::unique_ptr<Encoder> encoder_;
};

/// The node whose messages the calling thread is encoding or decoding; null outside of that. For
/// codecs of values that belong to a node, such as remote references.
class BATCHRPC_EXPORT CurrentNode {
 public:
  /// None, whatever it is outside of the scope.
  CurrentNode() noexcept;
  /// `node` stays where it is for as long as this lives.
  explicit CurrentNode(const std::shared_ptr<LocalNode>& node) noexcept;
  ~CurrentNode();
  CurrentNode(const CurrentNode&) = delete;
  CurrentNode& operator=(const CurrentNode&) = delete;

  [[nodiscard]] static std::shared_ptr<LocalNode> get();

 private:
  const std::shared_ptr<LocalNode>* outer_;
};

}  // namespace batchrpc::detail
