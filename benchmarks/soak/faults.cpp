#include "soak/faults.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace soak {

namespace {

using batchrpc::ErrorCode;
using namespace std::chrono_literals;

// How long a fault can have effects after it is over.
constexpr auto kAfter = 10s;
// A stop up to this long must not fail a call; a longer one, which the machine may cause, counts as
// a long stop.
constexpr auto kShortStop = 3s;
constexpr std::size_t kRemembered = 1000;
constexpr int kDescribed = 6;

bool may_end_so(FaultKind kind, ErrorCode code, bool with_handle) {
  const bool lost = code == ErrorCode::peer_lost || code == ErrorCode::not_sent;
  if (kind == FaultKind::kill) return lost || (with_handle && code == ErrorCode::not_found);
  if (kind == FaultKind::long_stop) {
    return lost || code == ErrorCode::unknown || code == ErrorCode::timed_out;
  }
  return false;
}

// The kind of the fault at that time.
FaultKind kind_of(const Fault& fault, Clock::time_point time) {
  const bool is_short = std::min(fault.until, time) - fault.from <= kShortStop;
  return fault.kind == FaultKind::stop && !is_short ? FaultKind::long_stop : fault.kind;
}

bool concerns(const Fault& fault, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), fault.name) != names.end();
}

}  // namespace

std::string to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::kill:
      return "killed";
    case FaultKind::stop:
      return "stopped";
    case FaultKind::long_stop:
      return "stopped for a long time";
    case FaultKind::cut:
      return "a cut connection";
  }
  return {};
}

void Faults::begin(FaultKind kind, const std::string& name) {
  const auto now = Clock::now();
  faults_.push_back({.kind = kind, .name = name, .from = now});
  if (kind == FaultKind::cut) faults_.back().until = now;
  ++counts_.at(static_cast<std::size_t>(kind));
  if (faults_.size() > kRemembered) faults_.pop_front();
}

void Faults::end(const std::string& name) {
  for (Fault& fault : faults_) {
    if (fault.name == name && fault.until == Clock::time_point::max()) fault.until = Clock::now();
  }
}

bool Faults::explain(ErrorCode code, bool with_handle, Clock::time_point time,
                     const std::vector<std::string>& names) const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    return concerns(fault, names) && fault.from <= time &&
           may_end_so(kind_of(fault, time), code, with_handle) &&
           (fault.until == Clock::time_point::max() || time <= fault.until + kAfter);
  });
}

std::string Faults::describe(Clock::time_point time, const std::vector<std::string>& names) const {
  const auto seconds = [](Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  };
  std::ostringstream text;
  text << std::fixed << std::setprecision(3);
  int count = 0;
  for (auto fault = faults_.rbegin(); fault != faults_.rend() && count < kDescribed; ++fault) {
    if (!concerns(*fault, names)) continue;
    ++count;
    text << "\n  " << fault->name << ' ' << to_string(kind_of(*fault, time)) << ' '
         << seconds(time - fault->from) << " s before";
    if (fault->until != Clock::time_point::max() && fault->until != fault->from) {
      text << ", over " << seconds(time - fault->until) << " s before";
    }
  }
  return count == 0 ? "\n  no fault before" : text.str();
}

}  // namespace soak
