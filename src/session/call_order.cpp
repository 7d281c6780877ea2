#include "session/call_order.hpp"

#include <iterator>
#include <utility>

#include "base/bytes_of.hpp"
#include "wire/frame.hpp"

namespace batchrpc {
namespace {

std::uint64_t bytes_of(const CallOrder::Call& call) {
  return sizeof call + call.words.size() * sizeof(Word) + bytes_of(call.payloads);
}

}  // namespace

void CallOrder::add(Line& line, std::uint64_t id, std::optional<Call> call) {
  const bool complete = call.has_value();
  const auto place = line.insert(line.end(), Place{std::move(call)});
  try {
    place->index = index_.emplace(std::pair(id, complete), Where{&line, place});
  } catch (...) {
    line.erase(place);
    throw;
  }
  if (complete) waiting_bytes_ += bytes_of(*place->call);
}

CallOrder::Line::iterator CallOrder::erase(Line& line, Line::iterator place) {
  index_.erase(place->index);
  return line.erase(place);
}

void CallOrder::append(const Key& key, std::uint64_t id, Call call) {
  add(lines_[key], id, std::move(call));
}

void CallOrder::reserve(const Key& key, std::uint64_t id) { add(lines_[key], id, std::nullopt); }

void CallOrder::fill(std::uint64_t id, Call call) {
  const auto at = index_.find({id, false});
  if (at == index_.end()) return;
  const Where where = at->second;
  where.place->index = index_.emplace(std::pair(id, true), where);
  index_.erase(at);
  waiting_bytes_ += bytes_of(call);
  where.place->call.emplace(std::move(call));
}

std::optional<CallOrder::Call> CallOrder::take(const Key& key) {
  const auto line = lines_.find(key);
  if (line == lines_.end()) return std::nullopt;
  Line& places = line->second;
  if (places.empty()) {
    lines_.erase(line);  // not with its last call: calls that arrive while that one starts must
                         // queue behind it
    return std::nullopt;
  }
  if (!places.front().call) return std::nullopt;
  std::optional<Call> call = std::move(places.front().call);
  erase(places, places.begin());
  waiting_bytes_ -= bytes_of(*call);
  return call;
}

std::vector<CallOrder::Call> CallOrder::take_all() {
  std::vector<Call> calls;
  for (auto& [key, places] : lines_) {
    for (auto place = places.begin(); place != places.end();) {
      if (!place->call) {
        ++place;
        continue;
      }
      calls.push_back(*std::move(place->call));
      place = erase(places, place);
    }
  }
  waiting_bytes_ = 0;
  return calls;
}

std::optional<CallOrder::Call> CallOrder::remove(std::uint64_t id) {
  const auto at = index_.lower_bound({id, true});
  if (at == index_.end() || at->first != std::pair(id, true)) return std::nullopt;
  const Where where = at->second;
  Call call = *std::move(where.place->call);
  erase(*where.line, where.place);
  waiting_bytes_ -= bytes_of(call);
  return call;
}

void CallOrder::give_up(std::uint64_t id) {
  const auto at = index_.find({id, false});
  if (at != index_.end()) erase(*at->second.line, at->second.place);
}

bool CallOrder::give_up_first(const Key& key) noexcept {
  const auto line = lines_.find(key);
  if (line == lines_.end() || line->second.empty() || line->second.front().call) return false;
  erase(line->second, line->second.begin());
  return true;
}

}  // namespace batchrpc
