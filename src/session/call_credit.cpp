#include "session/call_credit.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace batchrpc {
namespace {

// The size of a call's frame without its arguments.
constexpr std::uint64_t kEnvelopeBytes = 4096;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

CallCredit::Of caller() {
  return CallContext::current() != nullptr ? CallCredit::Of::handlers : CallCredit::Of::others;
}

}  // namespace

bool CallCredit::admit_in_line(std::uint64_t bytes, bool of_library, const Usage& usage) {
  const Of whose = caller();
  if (!fits(usage.of(Of::others), bytes) && !fits(usage.of(whose), bytes) && !of_library)
    return false;
  Line& line = line_of(whose);
  line.promised -= std::min(line.promised, bytes);
  return true;
}

void CallCredit::add(Wait&& wait) {
  wait.bytes = std::min(wait.bytes, kMostBytes);
  line_of(wait.context ? Of::handlers : Of::others).waits.push_back(std::move(wait));
  has_waits_.store(true, std::memory_order_relaxed);
}

std::optional<CallCredit::Wait> CallCredit::next(const Usage& usage) {
  std::optional<Wait> next;
  std::uint64_t promised = 0;
  for (const Of whose : {Of::handlers, Of::others}) {
    Line& line = line_of(whose);
    promised += line.promised;
    if (next || line.waits.empty()) continue;
    const std::uint64_t bytes = line.waits.front().bytes;
    if (!fits(usage.of(whose) + promised, bytes + kEnvelopeBytes)) continue;
    line.promised += bytes;
    next = std::move(line.waits.front());
    line.waits.pop_front();
  }
  const bool more = std::any_of(lines_.begin(), lines_.end(),
                                [](const Line& line) { return !line.waits.empty(); });
  has_waits_.store(more, std::memory_order_relaxed);
  return next;
}

void CallCredit::forget_promises() noexcept {
  for (Line& line : lines_)
    line.promised = 0;
}

std::vector<CallCredit::Wait> CallCredit::take_all() {
  std::vector<Wait> all;
  for (Line& line : lines_) {
    std::move(line.waits.begin(), line.waits.end(), std::back_inserter(all));
    line = Line();
  }
  has_waits_.store(false, std::memory_order_relaxed);
  return all;
}

}  // namespace batchrpc
