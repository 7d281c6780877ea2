#include "call/call_diagnostics_text.hpp"

#include <utility>

namespace batchrpc {

Guarantee guarantee_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::timed_out:
      return Guarantee::deadline;
    case ErrorCode::cancelled:
      return Guarantee::cancellation;
    case ErrorCode::peer_lost:
      return Guarantee::dead_peer;
    case ErrorCode::overloaded:
      return Guarantee::overload;
    case ErrorCode::shut_down:
      return Guarantee::shutdown;
    case ErrorCode::join_failed:
      return Guarantee::membership;
    case ErrorCode::remote_error:
    case ErrorCode::not_sent:
    case ErrorCode::unknown:
    case ErrorCode::broken_promise:
    case ErrorCode::not_found:
    case ErrorCode::bad_signature:
    case ErrorCode::bad_message:
    case ErrorCode::invalid_argument:
    case ErrorCode::owner_lost:
    case ErrorCode::rref_expired:
    case ErrorCode::permission_denied:
      return Guarantee::at_most_once;
  }
  return Guarantee::none;
}

void report_diagnostics(const std::exception_ptr& error,
                        std::shared_ptr<CallDiagnostics> diagnostics) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (Error& known) {  // the one in the pointer, not a copy
    if (diagnostics->guarantee == Guarantee::none)
      diagnostics->guarantee = guarantee_of(known.code());
    detail::set_diagnostics(known, std::move(diagnostics));
  } catch (...) {
    return;
  }
}

void report_refusal(Error& error, std::string_view function, std::string_view peer, TimePoint now,
                    Guarantee guarantee) {
  auto diagnostics = std::make_shared<CallDiagnostics>();
  diagnostics->function = function;
  diagnostics->peer = peer;
  diagnostics->guarantee = guarantee == Guarantee::none ? guarantee_of(error.code()) : guarantee;
  diagnostics->called_at = now;
  diagnostics->first_called_at = now;
  diagnostics->ended_at = now;
  detail::set_diagnostics(error, std::move(diagnostics));
}

std::vector<std::string> count_texts(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const auto& [name, count] : counts)
    texts.push_back(name + (count > 1 ? " (" + std::to_string(count) + " calls)" : ""));
  return texts;
}

}  // namespace batchrpc
