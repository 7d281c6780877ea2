#include "batchrpc/base/error.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "base/plain_text.hpp"

namespace batchrpc {
namespace {

// The text may be a peer's, and of any length. Exceptions of LibTorch have some kilobytes.
constexpr std::size_t kLongestText = 1 << 20;

}  // namespace

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::remote_error:
      return "RemoteError";
    case ErrorCode::timed_out:
      return "TimedOut";
    case ErrorCode::not_sent:
      return "NotSent";
    case ErrorCode::unknown:
      return "Unknown";
    case ErrorCode::peer_lost:
      return "PeerLost";
    case ErrorCode::broken_promise:
      return "BrokenPromise";
    case ErrorCode::overloaded:
      return "Overloaded";
    case ErrorCode::cancelled:
      return "Cancelled";
    case ErrorCode::not_found:
      return "NotFound";
    case ErrorCode::bad_signature:
      return "BadSignature";
    case ErrorCode::bad_message:
      return "BadMessage";
    case ErrorCode::shut_down:
      return "ShutDown";
    case ErrorCode::invalid_argument:
      return "InvalidArgument";
    case ErrorCode::join_failed:
      return "JoinFailed";
    case ErrorCode::owner_lost:
      return "OwnerLost";
    case ErrorCode::rref_expired:
      return "RRefExpired";
    case ErrorCode::permission_denied:
      return "PermissionDenied";
  }
  return "Error";
}

Error::Error(ErrorCode code, const std::string& message, bool may_have_run)
    : std::runtime_error(escaped_lines(message, kLongestText)),
      code_(code),
      may_have_run_(may_have_run) {}

void detail::set_diagnostics(Error& error,
                             std::shared_ptr<const CallDiagnostics> diagnostics) noexcept {
  error.diagnostics_ = std::move(diagnostics);
}

// Each destructor is defined here, so that a class's type information exists once. Otherwise an
// error could not be caught across shared libraries.
Error::~Error() = default;
RemoteError::~RemoteError() = default;
TimedOut::~TimedOut() = default;
NotSent::~NotSent() = default;
Unknown::~Unknown() = default;
PeerLost::~PeerLost() = default;
BrokenPromise::~BrokenPromise() = default;
Overloaded::~Overloaded() = default;
Cancelled::~Cancelled() = default;
NotFound::~NotFound() = default;
BadSignature::~BadSignature() = default;
BadMessage::~BadMessage() = default;
ShutDown::~ShutDown() = default;
InvalidArgument::~InvalidArgument() = default;
JoinFailed::~JoinFailed() = default;
OwnerLost::~OwnerLost() = default;
RRefExpired::~RRefExpired() = default;
PermissionDenied::~PermissionDenied() = default;

RemoteError::RemoteError(std::string_view thrown_what, std::string_view type, std::string_view node,
                         std::string_view function, bool may_have_run)
    : Error(ErrorCode::remote_error,
            std::string(function) + " on " + std::string(node) + " threw " + std::string(type) +
                ": " + std::string(thrown_what),
            may_have_run),
      what_(std::string(thrown_what)),
      type_(escaped(type, kLongestText)),
      node_(std::string(node)),
      function_(std::string(function)) {}

RemoteError::RemoteError(const std::string& text, const RemoteError& parts, bool may_have_run)
    : Error(ErrorCode::remote_error, text, may_have_run),
      what_(parts.what_),
      type_(parts.type_),
      node_(parts.node_),
      function_(parts.function_) {}

const char* RemoteError::thrown_what() const noexcept { return what_.what(); }
const char* RemoteError::type() const noexcept { return type_.what(); }
const char* RemoteError::node() const noexcept { return node_.what(); }
const char* RemoteError::function() const noexcept { return function_.what(); }

void RemoteError::rethrow_original() const {
  const auto throw_if = [this]<class E>(std::string_view name, const E* /*type*/) {
    if (type() == name) throw E(thrown_what());
  };
  throw_if("std::invalid_argument", static_cast<std::invalid_argument*>(nullptr));
  throw_if("std::out_of_range", static_cast<std::out_of_range*>(nullptr));
  throw_if("std::domain_error", static_cast<std::domain_error*>(nullptr));
  throw_if("std::length_error", static_cast<std::length_error*>(nullptr));
  throw_if("std::logic_error", static_cast<std::logic_error*>(nullptr));
  throw_if("std::range_error", static_cast<std::range_error*>(nullptr));
  throw_if("std::overflow_error", static_cast<std::overflow_error*>(nullptr));
  throw_if("std::underflow_error", static_cast<std::underflow_error*>(nullptr));
  throw_if("std::runtime_error", static_cast<std::runtime_error*>(nullptr));
  throw RemoteError(*this);
}

std::exception_ptr make_error(ErrorCode code, const std::string& message, bool may_have_run) {
  const auto make = [&]<class E>(const E* /*type*/) {
    return std::make_exception_ptr(E(message, may_have_run));
  };
  switch (code) {
    case ErrorCode::timed_out:
      return make(static_cast<TimedOut*>(nullptr));
    case ErrorCode::not_sent:
      return make(static_cast<NotSent*>(nullptr));
    case ErrorCode::unknown:
      return make(static_cast<Unknown*>(nullptr));
    case ErrorCode::peer_lost:
      return make(static_cast<PeerLost*>(nullptr));
    case ErrorCode::broken_promise:
      return make(static_cast<BrokenPromise*>(nullptr));
    case ErrorCode::overloaded:
      return make(static_cast<Overloaded*>(nullptr));
    case ErrorCode::cancelled:
      return make(static_cast<Cancelled*>(nullptr));
    case ErrorCode::not_found:
      return make(static_cast<NotFound*>(nullptr));
    case ErrorCode::bad_signature:
      return make(static_cast<BadSignature*>(nullptr));
    case ErrorCode::bad_message:
      return make(static_cast<BadMessage*>(nullptr));
    case ErrorCode::shut_down:
      return make(static_cast<ShutDown*>(nullptr));
    case ErrorCode::invalid_argument:
      return make(static_cast<InvalidArgument*>(nullptr));
    case ErrorCode::join_failed:
      return make(static_cast<JoinFailed*>(nullptr));
    case ErrorCode::owner_lost:
      return make(static_cast<OwnerLost*>(nullptr));
    case ErrorCode::rref_expired:
      return make(static_cast<RRefExpired*>(nullptr));
    case ErrorCode::permission_denied:
      return make(static_cast<PermissionDenied*>(nullptr));
    case ErrorCode::remote_error:
      break;
  }
  return std::make_exception_ptr(Error(code, message, may_have_run));
}

std::exception_ptr detail::copy_error(const Error& error, bool may_have_run,
                                      const TextAround& around) {
  const std::string text = std::string(around.before).append(error.what()).append(around.behind);
  if (const auto* const thrown = dynamic_cast<const RemoteError*>(&error)) {
    return std::make_exception_ptr(RemoteError(text, *thrown, may_have_run));
  }
  if (const auto* const busy = dynamic_cast<const Overloaded*>(&error)) {
    return std::make_exception_ptr(Overloaded(text, busy->retry_after(), may_have_run));
  }
  return make_error(error.code(), text, may_have_run);
}

namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

std::string type_name(const std::exception_ptr& error) {
  if (!error) return "none";
  const std::type_info* type = error.__cxa_exception_type();
  return type != nullptr ? demangled(type->name()) : "an unknown type";
}

namespace {

// `depth`: how many exceptions it is nested in.
std::string describe_nested(const std::exception_ptr& error, int depth) {
  constexpr int kDeepest = 8;
  const auto text_or_type = [&](const char* text) {
    return text != nullptr ? std::string(text) : "an exception of type " + type_name(error);
  };
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    std::string text = without_stack(text_or_type(thrown.what()));
    const auto* const outer = dynamic_cast<const std::nested_exception*>(&thrown);
    if (outer != nullptr && outer->nested_ptr() && depth < kDeepest)
      text += ": " + describe_nested(outer->nested_ptr(), depth + 1);
    return text;
  } catch (const char* text) {
    return text_or_type(text);
  } catch (const std::string& text) {
    return text;
  } catch (...) {
    return text_or_type(nullptr);
  }
}

}  // namespace

std::string describe(const std::exception_ptr& error) {
  return error ? describe_nested(error, 0) : "no error";
}

}  // namespace batchrpc
