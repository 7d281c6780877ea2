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
/// Stores in `error` which call it ended. No other thread may use `error` yet.
BATCHRPC_EXPORT void set_diagnostics(Error& error,
                                     std::shared_ptr<const CallDiagnostics> diagnostics) noexcept;

/// Text to put around an error's what().
struct TextAround {
  std::string_view before{};
  std::string_view behind{};
};
/// Copies `error` with its type and members, but with this may_have_run() and what(). The copy has
/// no diagnostics, since those describe the original error.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr copy_error(const Error& error, bool may_have_run,
                                                            const TextAround& around = {});
}  // namespace detail

/// The kind of failure, grouped by what the caller can do about it; see `docs/errors.md`. The
/// numbers travel on the wire and never change.
enum class ErrorCode : std::uint16_t {
  remote_error = 1,        ///< the remote function threw
  timed_out = 2,           ///< no answer within the time-out
  not_sent = 3,            ///< the call surely never ran: safe to retry
  unknown = 4,             ///< the peer lives, but whether the call ran is not known
  peer_lost = 5,           ///< the peer is gone; the call may have run
  broken_promise = 6,      ///< a promise was destroyed without a value
  overloaded = 7,          ///< refused because a limit was reached: try again later
  cancelled = 8,           ///< the call was cancelled
  not_found = 9,           ///< no such function, peer or object
  bad_signature = 10,      ///< the function is there, with another signature
  bad_message = 11,        ///< bytes that cannot be decoded, or exceed a limit
  shut_down = 12,          ///< the node is shutting down or is gone
  invalid_argument = 13,   ///< an option or argument out of its range
  join_failed = 14,        ///< the node could not listen, or not join its group
  owner_lost = 15,         ///< the node that owned an RRef's object has ended or restarted
  rref_expired = 16,       ///< an RRef's object is gone: its owner did not hear from this node
  permission_denied = 17,  ///< the caller may not do this
};

/// The name of `code`, such as "TimedOut".
[[nodiscard]] BATCHRPC_EXPORT std::string_view to_string(ErrorCode code) noexcept;

/// The base class of all errors of batchrpc. The message names the node and the function, if any,
/// and says what to do. Copying is cheap and never throws.
class BATCHRPC_EXPORT Error : public std::runtime_error {
 public:
  /// For codes that this version does not know. Every known code has a class of its own.
  Error(ErrorCode code, const std::string& message, bool may_have_run);
  ~Error() override;

  /// The kind of failure, for programs to decide by.
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

  /// Whether the call that ended in this error may have run, in whole or in part, on the callee.
  /// False is a promise: the call never ran and may be sent again.
  [[nodiscard]] bool may_have_run() const noexcept { return may_have_run_; }

  /// What the calling node knows about the failed call, with times
  /// (batchrpc/base/call_diagnostics.hpp); null if the error belongs to no call. Valid as long as
  /// this error or a copy of it exists. explain() turns it into text.
  [[nodiscard]] const CallDiagnostics* diagnostics() const noexcept { return diagnostics_.get(); }

 private:
  friend void detail::set_diagnostics(Error& error,
                                      std::shared_ptr<const CallDiagnostics> diagnostics) noexcept;

  ErrorCode code_;
  bool may_have_run_;
  std::shared_ptr<const CallDiagnostics> diagnostics_;
};

/// The remote function threw. `what()` names the node, the function and the exception; the members
/// below give them one by one.
class BATCHRPC_EXPORT RemoteError : public Error {
 public:
  /// `type` is the demangled C++ type of the exception, `thrown_what` its `what()`. `may_have_run`
  /// is false for a method whose object's constructor threw, since the method did not run.
  RemoteError(std::string_view thrown_what, std::string_view type, std::string_view node,
              std::string_view function, bool may_have_run = true);
  ~RemoteError() override;

  /// The what() and the demangled C++ type of the exception; the node and the function that threw.
  /// Never null. Valid as long as this error or a copy of it exists.
  /// @{
  [[nodiscard]] const char* thrown_what() const noexcept;
  [[nodiscard]] const char* type() const noexcept;
  [[nodiscard]] const char* node() const noexcept;
  [[nodiscard]] const char* function() const noexcept;
  /// @}

  /// Throws an exception of the type that was thrown, with thrown_what(), if it is one of the
  /// standard header stdexcept, such as std::invalid_argument. Else it throws this error.
  [[noreturn]] void rethrow_original() const;

 private:
  friend std::exception_ptr detail::copy_error(const Error& error, bool may_have_run,
                                               const detail::TextAround& around);
  RemoteError(const std::string& text, const RemoteError& parts, bool may_have_run);

  // Each member is a runtime_error because copies of one share its text and never throw.
  std::runtime_error what_;
  std::runtime_error type_;
  std::runtime_error node_;
  std::runtime_error function_;
};

namespace detail {
/// The base of the class for one error code.
template <ErrorCode Code, bool MayHaveRun>
class TypedError : public Error {
 public:
  explicit TypedError(const std::string& message, bool may_have_run = MayHaveRun)
      : Error(Code, message, may_have_run) {}
};
}  // namespace detail

/// No answer came within the time-out. Unless may_have_run() is false, the call may still be
/// running.
class BATCHRPC_EXPORT TimedOut final : public detail::TypedError<ErrorCode::timed_out, true> {
 public:
  using TypedError::TypedError;
  ~TimedOut() override;
};
/// The peer could not be reached, or the message was never sent. It is safe to call again.
class BATCHRPC_EXPORT NotSent final : public detail::TypedError<ErrorCode::not_sent, false> {
 public:
  using TypedError::TypedError;
  ~NotSent() override;
};
/// The connection broke during the call. The peer is alive, but does not remember the call.
class BATCHRPC_EXPORT Unknown final : public detail::TypedError<ErrorCode::unknown, true> {
 public:
  using TypedError::TypedError;
  ~Unknown() override;
};
/// The peer is gone. The call may have run.
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
/// The call was refused because a limit was reached. Try again later.
class BATCHRPC_EXPORT Overloaded : public detail::TypedError<ErrorCode::overloaded, false> {
 public:
  using TypedError::TypedError;
  /// `retry_after` is an estimate of when there will be room.
  Overloaded(const std::string& message, std::chrono::nanoseconds retry_after,
             bool may_have_run = false)
      : TypedError(message, may_have_run), retry_after_(retry_after) {}
  ~Overloaded() override;

  /// The estimate, by the node that refused, of how long to wait until there is room; zero if not
  /// known.
  [[nodiscard]] std::chrono::nanoseconds retry_after() const noexcept { return retry_after_; }

 private:
  std::chrono::nanoseconds retry_after_{};
};
/// The call was cancelled.
class BATCHRPC_EXPORT Cancelled final : public detail::TypedError<ErrorCode::cancelled, true> {
 public:
  using TypedError::TypedError;
  ~Cancelled() override;
};
/// No such function, peer or object. The message suggests similar names.
class BATCHRPC_EXPORT NotFound final : public detail::TypedError<ErrorCode::not_found, false> {
 public:
  using TypedError::TypedError;
  ~NotFound() override;
};
/// The function exists with other types. The message names both signatures.
class BATCHRPC_EXPORT BadSignature final
    : public detail::TypedError<ErrorCode::bad_signature, false> {
 public:
  using TypedError::TypedError;
  ~BadSignature() override;
};
/// Bytes that cannot be decoded, or that exceed a limit.
class BATCHRPC_EXPORT BadMessage final : public detail::TypedError<ErrorCode::bad_message, false> {
 public:
  using TypedError::TypedError;
  ~BadMessage() override;
};
/// This node or the callee is shutting down or is gone.
class BATCHRPC_EXPORT ShutDown final : public detail::TypedError<ErrorCode::shut_down, false> {
 public:
  using TypedError::TypedError;
  ~ShutDown() override;
};
/// An option, argument or result is out of its range.
class BATCHRPC_EXPORT InvalidArgument final
    : public detail::TypedError<ErrorCode::invalid_argument, false> {
 public:
  using TypedError::TypedError;
  ~InvalidArgument() override;
};
/// The node could not listen, or could not join its group.
class BATCHRPC_EXPORT JoinFailed final : public detail::TypedError<ErrorCode::join_failed, false> {
 public:
  using TypedError::TypedError;
  ~JoinFailed() override;
};

/// The object of an RRef is gone, because the node that owned it has ended or restarted. Create
/// another object.
class BATCHRPC_EXPORT OwnerLost final : public detail::TypedError<ErrorCode::owner_lost, false> {
 public:
  using TypedError::TypedError;
  ~OwnerLost() override;
};
/// The object of an RRef is gone: its owner did not hear from this node for longer than the lease
/// (NodeOptions::liveness.rref_lease), and no other node referred to it. Create another object.
class BATCHRPC_EXPORT RRefExpired final
    : public detail::TypedError<ErrorCode::rref_expired, false> {
 public:
  using TypedError::TypedError;
  ~RRefExpired() override;
};
/// The callee does not let this caller do what it asked for. The call never ran.
class BATCHRPC_EXPORT PermissionDenied final
    : public detail::TypedError<ErrorCode::permission_denied, false> {
 public:
  using TypedError::TypedError;
  ~PermissionDenied() override;
};

/// Makes the typed error for `code`. A code that this version does not know (from a newer peer)
/// gives a plain `Error`. For remote_error use `RemoteError`.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr make_error(ErrorCode code,
                                                            const std::string& message,
                                                            bool may_have_run);

/// The message of `error`: `what()` of a std::exception and of those nested in it, or the text
/// itself if it is a `char const*` or std::string; else a line that names its type.
[[nodiscard]] BATCHRPC_EXPORT std::string describe(const std::exception_ptr& error);

/// The demangled type of the exception in `error`, such as "std::out_of_range".
[[nodiscard]] BATCHRPC_EXPORT std::string type_name(const std::exception_ptr& error);

}  // namespace batchrpc
