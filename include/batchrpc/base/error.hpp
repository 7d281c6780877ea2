#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

class Error;
struct CallDiagnostics;

namespace detail {
/// Says in an error that nobody else has yet which call it ended.
BATCHRPC_EXPORT void set_diagnostics(Error& error,
                                     std::shared_ptr<const CallDiagnostics> diagnostics) noexcept;

/// What is added to an error's what().
struct TextAround {
  std::string_view before{};
  std::string_view behind{};
};
/// `error` again, of its type and with its parts, but for may_have_run() and what(); without its
/// story, which says what it was before.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr copy_error(const Error& error, bool may_have_run,
                                                            const TextAround& around = {});
}  // namespace detail

/// What went wrong, by what the caller can do about it. `docs/errors.md` tells more of each.
/// The numbers travel on the wire and never change.
enum class ErrorCode : std::uint16_t {
  remote_error = 1,       ///< the remote function threw
  timed_out = 2,          ///< no answer in time
  not_sent = 3,           ///< surely never ran: safe to retry
  unknown = 4,            ///< the peer lives, but whether the call ran is not known
  peer_lost = 5,          ///< the peer is gone; the call may have run
  broken_promise = 6,     ///< a promise was destroyed without a value
  overloaded = 7,         ///< refused for lack of room: try again later
  cancelled = 8,          ///< somebody asked for it not to run
  not_found = 9,          ///< no such function, peer or object
  bad_signature = 10,     ///< the function is there, with another signature
  bad_message = 11,       ///< bytes that do not decode, or beyond a limit
  shut_down = 12,         ///< the node is shutting down or is gone
  invalid_argument = 13,  ///< an option or argument out of its range
  join_failed = 14,       ///< the node could not listen, or not join its group
  owner_lost = 15,        ///< the node that an RRef's object lived on has ended, or was restarted
  rref_expired = 16,  ///< the object behind an RRef is gone, since its owner did not hear from us
};

/// The name of `code`, such as "TimedOut".
[[nodiscard]] BATCHRPC_EXPORT std::string_view to_string(ErrorCode code) noexcept;

/// The base of every error that batchrpc makes. Its message names node and function where there are
/// any, and says what to do. Copying is cheap and never throws.
class BATCHRPC_EXPORT Error : public std::runtime_error {
 public:
  /// For codes that are not known here; of the others there is a class each.
  Error(ErrorCode code, const std::string& message, bool may_have_run);
  ~Error() override;

  /// What a program decides by.
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

  /// Whether the call that ended in this error may have run, in whole or in part, on the callee.
  /// False is a promise: the call never ran and may be sent again.
  [[nodiscard]] bool may_have_run() const noexcept { return may_have_run_; }

  /// What the node that made the call knows of it, with times (batchrpc/base/call_diagnostics.hpp);
  /// null where the error is of no call. As long as this error, or a copy, lives. explain() puts it
  /// into words.
  [[nodiscard]] const CallDiagnostics* diagnostics() const noexcept { return diagnostics_.get(); }

 private:
  friend void detail::set_diagnostics(Error& error,
                                      std::shared_ptr<const CallDiagnostics> diagnostics) noexcept;

  ErrorCode code_;
  bool may_have_run_;
  std::shared_ptr<const CallDiagnostics> diagnostics_;
};

/// The remote function threw. `what()` says where and what; the parts are there one by one.
class BATCHRPC_EXPORT RemoteError : public Error {
 public:
  /// `type` is the demangled C++ type of what was thrown, `thrown_what` its `what()`. Methods have
  /// not run where the constructor of their object threw.
  RemoteError(std::string_view thrown_what, std::string_view type, std::string_view node,
              std::string_view function, bool may_have_run = true);
  ~RemoteError() override;

  /// The what() of what was thrown and its demangled C++ type; the node and the function that
  /// threw. Never null; as long as this error, or a copy, lives.
  /// @{
  [[nodiscard]] const char* thrown_what() const noexcept;
  [[nodiscard]] const char* type() const noexcept;
  [[nodiscard]] const char* node() const noexcept;
  [[nodiscard]] const char* function() const noexcept;
  /// @}

 private:
  friend std::exception_ptr detail::copy_error(const Error& error, bool may_have_run,
                                               const detail::TextAround& around);
  RemoteError(const std::string& text, const RemoteError& parts, bool may_have_run);

  // One runtime_error a part: its copy shares the text, so that copies never throw.
  std::runtime_error what_;
  std::runtime_error type_;
  std::runtime_error node_;
  std::runtime_error function_;
};

namespace detail {
/// One class an error code, so that each can be caught by its name.
template <ErrorCode Code, bool MayHaveRun>
class TypedError : public Error {
 public:
  explicit TypedError(const std::string& message, bool may_have_run = MayHaveRun)
      : Error(Code, message, may_have_run) {}
};
}  // namespace detail

/// No answer in time. The call may be running still, unless may_have_run() says no.
class BATCHRPC_EXPORT TimedOut final : public detail::TypedError<ErrorCode::timed_out, true> {
 public:
  using TypedError::TypedError;
  ~TimedOut() override;
};
/// The peer could not be reached, or the message never left: it is safe to call again.
class BATCHRPC_EXPORT NotSent final : public detail::TypedError<ErrorCode::not_sent, false> {
 public:
  using TypedError::TypedError;
  ~NotSent() override;
};
/// The connection broke under the call, and the peer, which lives, does not remember it.
class BATCHRPC_EXPORT Unknown final : public detail::TypedError<ErrorCode::unknown, true> {
 public:
  using TypedError::TypedError;
  ~Unknown() override;
};
/// The peer is gone; the call may have run.
class BATCHRPC_EXPORT PeerLost final : public detail::TypedError<ErrorCode::peer_lost, true> {
 public:
  using TypedError::TypedError;
  ~PeerLost() override;
};
/// A promise was destroyed without a value.
class BATCHRPC_EXPORT BrokenPromise final
    : public detail::TypedError<ErrorCode::broken_promise, true> {
 public:
  using TypedError::TypedError;
  ~BrokenPromise() override;
};
/// Refused for lack of room: try again later.
class BATCHRPC_EXPORT Overloaded : public detail::TypedError<ErrorCode::overloaded, false> {
 public:
  using TypedError::TypedError;
  /// With an estimate of when there may be room.
  Overloaded(const std::string& message, std::chrono::nanoseconds retry_after,
             bool may_have_run = false)
      : TypedError(message, may_have_run), retry_after_(retry_after) {}
  ~Overloaded() override;

  /// In how long there may be room, as who refused estimates it; zero: not known.
  [[nodiscard]] std::chrono::nanoseconds retry_after() const noexcept { return retry_after_; }

 private:
  std::chrono::nanoseconds retry_after_{};
};
/// Somebody asked for it not to run.
class BATCHRPC_EXPORT Cancelled final : public detail::TypedError<ErrorCode::cancelled, true> {
 public:
  using TypedError::TypedError;
  ~Cancelled() override;
};
/// No such function, peer or object; near names are suggested.
class BATCHRPC_EXPORT NotFound final : public detail::TypedError<ErrorCode::not_found, false> {
 public:
  using TypedError::TypedError;
  ~NotFound() override;
};
/// The function is there with other types; the message names both signatures.
class BATCHRPC_EXPORT BadSignature final
    : public detail::TypedError<ErrorCode::bad_signature, false> {
 public:
  using TypedError::TypedError;
  ~BadSignature() override;
};
/// Bytes that do not decode, or are beyond a limit.
class BATCHRPC_EXPORT BadMessage final : public detail::TypedError<ErrorCode::bad_message, false> {
 public:
  using TypedError::TypedError;
  ~BadMessage() override;
};
/// This node, or the callee, is shutting down or is gone.
class BATCHRPC_EXPORT ShutDown final : public detail::TypedError<ErrorCode::shut_down, false> {
 public:
  using TypedError::TypedError;
  ~ShutDown() override;
};
/// An option, argument or result out of its range.
class BATCHRPC_EXPORT InvalidArgument final
    : public detail::TypedError<ErrorCode::invalid_argument, false> {
 public:
  using TypedError::TypedError;
  ~InvalidArgument() override;
};
/// The node could not listen, or not join its group.
class BATCHRPC_EXPORT JoinFailed final : public detail::TypedError<ErrorCode::join_failed, false> {
 public:
  using TypedError::TypedError;
  ~JoinFailed() override;
};

/// The object behind an RRef is gone with the node that owned it, which has ended or was restarted:
/// create another.
class BATCHRPC_EXPORT OwnerLost final : public detail::TypedError<ErrorCode::owner_lost, false> {
 public:
  using TypedError::TypedError;
  ~OwnerLost() override;
};
/// The object behind an RRef is gone: its owner had not heard from this node for longer than the
/// lease (NodeOptions::rref_lease), and nobody else referred to it. Create another.
class BATCHRPC_EXPORT RRefExpired final
    : public detail::TypedError<ErrorCode::rref_expired, false> {
 public:
  using TypedError::TypedError;
  ~RRefExpired() override;
};

/// The typed error for `code`, as an exception pointer; for a code that is not known (of a newer
/// peer) a plain `Error`. For remote_error use `RemoteError`.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr make_error(ErrorCode code,
                                                            const std::string& message,
                                                            bool may_have_run);

/// What `error` says of itself: `what()` of a std::exception, else a line that names its type.
[[nodiscard]] BATCHRPC_EXPORT std::string describe(const std::exception_ptr& error);

/// The demangled type of the exception in `error`, such as "std::out_of_range".
[[nodiscard]] BATCHRPC_EXPORT std::string type_name(const std::exception_ptr& error);

}  // namespace batchrpc
