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

/// Names a remote function on the wire. Its views must outlive the function call that gets it.
struct FunctionKey {
  std::string_view name;
  std::string_view signature;
  std::uint64_t hash = 0;    ///< of name and signature
  std::string_view shown{};  ///< the name for people; empty: made of `name` (shown_name)
};

constexpr FunctionKey function_key(std::string_view name, std::string_view signature,
                                   std::string_view shown = {}) {
  return {name, signature, signature_hash(name) * 31 + signature_hash(signature), shown};
}

class CallProbe;
class StateBase;

/// A reply: an error, or a body to decode at kBodyPointer - 1 of the segment. Valid only while the
/// handler runs.
struct Reply {
  std::exception_ptr error;
  std::span<const Word> segment;
  std::span<const Bytes> payloads;
  CallProbe* probe = nullptr;  ///< null: the call is not recorded
};

/// Ends the record of a call: its caller is about to get the result or `error`. Only the first time
/// counts.
BATCHRPC_EXPORT void end_record(CallProbe& probe, const std::exception_ptr& error) noexcept;

/// The part that has submitted calls, and can cancel them.
class Submitter {
 public:
  /// Cancels a call: its receiver gets Cancelled before this returns. False if the call has ended.
  /// Thread-safe.
  virtual bool cancel_call(std::uint64_t id) noexcept = 0;

 protected:
  ~Submitter() = default;
};

/// A call that was submitted: the part that can cancel it, and its number there.
struct SubmittedCall {
  std::weak_ptr<Submitter> submitter{};
  std::uint64_t id = 0;

  /// Cancels the call: its receiver gets Cancelled before this returns. False if the call has
  /// ended.
  BATCHRPC_EXPORT bool cancel() const noexcept;
};

/// Waits for the reply to one call.
class ReplyReceiver {
 public:
  /// Gets the reply, once. The receiver may be gone afterwards.
  virtual void receive(Reply& reply) noexcept = 0;
  /// Learns that the call is submitted. Called at most once, before receive() and under a lock.
  virtual void submitted(SubmittedCall /*call*/, bool /*cancel_when_dropped*/) noexcept {}
  /// Returns the state of the future that the reply completes; null if there is none.
  [[nodiscard]] virtual StateBase* state() noexcept { return nullptr; }

 protected:
  ~ReplyReceiver() = default;
};

/// The duty to give a receiver its reply. A handler that is dropped gives it BrokenPromise.
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

/// Chooses the memory for payload `index`, of `size` bytes, of a reply or call. The library
/// allocates if it throws, or returns another size. The driving thread calls it at most once for
/// each payload, before its bytes are read. It must not block. The payload owns it.
using PayloadTarget = UniqueFunction<std::span<std::byte>(std::size_t index, std::size_t size)>;

/// What a call needs until it has ended, and which knows more of why it was not sent: the handle of
/// the object that it calls. Thread-safe.
class KeptByCall {
 public:
  /// Returns the error of a call that was not sent: `error`, or OwnerLost if that is a NotSent and
  /// the object is gone. Each call gets an error of its own. Called without locks; takes the
  /// node's.
  [[nodiscard]] virtual std::exception_ptr not_sent(std::exception_ptr error) const = 0;

 protected:
  ~KeptByCall() = default;
};

/// How a call is made.
struct OutgoingOptions {
  Duration timeout = kNoTimeout;
  bool wants_reply = true;
  bool detached = true;  ///< as in CallOptions, where the default differs
  bool cancel_when_dropped = false;
  RetryOptions retry{};  ///< only for calls that want a reply
  std::unique_ptr<PayloadTarget> payload_target;
  std::shared_ptr<const KeptByCall> kept;  ///< until a call that wants a reply has ended
  std::shared_ptr<OutgoingExtras> extras;  ///< null: nothing goes with it
};

/// An encoder of the calling thread, with space for the envelope. A thread may have several leases.
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

/// Sets, for a scope, the node whose messages the calling thread encodes or decodes. Codecs of
/// values that belong to a node, such as remote references, ask for it.
class BATCHRPC_EXPORT CurrentNode {
 public:
  /// Sets no node.
  CurrentNode() noexcept;
  /// `node` must stay where it is while this lives.
  explicit CurrentNode(const std::shared_ptr<LocalNode>& node) noexcept;
  ~CurrentNode();
  CurrentNode(const CurrentNode&) = delete;
  CurrentNode& operator=(const CurrentNode&) = delete;

  /// Null: no scope is open, or it sets no node.
  [[nodiscard]] static std::shared_ptr<LocalNode> get();

 private:
  const std::shared_ptr<LocalNode>* outer_;
};

}  // namespace batchrpc::detail
