#include "session/call_order.hpp"

#include <utility>

#include "base/bytes_of.hpp"
#include "wire/frame.hpp"

namespace batchrpc {
namespace {

std::uint64_t bytes_of(const CallOrder::Call& call) {
  return sizeof call + call.words.size() * sizeof(Word) + bytes_of(call.payloads);
}

}  // namespace

void CallOrder::append(const Key& key, Call call) {
  waiting_bytes_ += bytes_of(call);
  lines_[key].push_back({0, std::move(call)});
}

void CallOrder::reserve(const Key& key, std::uint64_t id) {
  lines_[key].push_back({id, std::nullopt});
}

void CallOrder::fill(const Key& key, std::uint64_t id, Call call) {
  for (Place& place : lines_[key]) {
    if (place.call || place.id != id) continue;
    waiting_bytes_ += bytes_of(call);
    place.call.emplace(std::move(call));
    return;
  }
}

std::optional<CallOrder::Call> CallOrder::take(const Key& key) {
  const auto line = lines_.find(key);
  if (line == lines_.end()) return std::nullopt;
  auto& places = line->second;
  if (places.empty()) {
    lines_.erase(line);  // not with its last call: calls that arrive while that one starts must
                         // queue behind it
    return std::nullopt;
  }
  if (!places.front().call) return std::nullopt;
  std::optional<Call> call = std::move(places.front().call);
  places.pop_front();
  waiting_bytes_ -= bytes_of(*call);
  return call;
}

std::vector<CallOrder::Call> CallOrder::take_all() {
  std::vector<Call> calls;
  for (auto& [key, places] : lines_) {
    for (Place& place : places) {
      if (place.call) calls.push_back(*std::move(place.call));
    }
    std::erase_if(places, [](const Place& place) { return place.call.has_value(); });
  }
  waiting_bytes_ = 0;
  return calls;
}

std::optional<CallOrder::Call> CallOrder::remove(std::uint64_t id) {
  for (auto& [key, places] : lines_) {
    for (auto place = places.begin(); place != places.end(); ++place) {
      if (!place->call || wire::parse_frame(place->call->words).header.id != id) continue;
      Call call = *std::move(place->call);
      places.erase(place);
      waiting_bytes_ -= bytes_of(call);
      return call;
    }
  }
  return std::nullopt;
}

void CallOrder::give_up(const Key& key, std::uint64_t id) {
  const auto line = lines_.find(key);
  if (line == lines_.end()) return;
  std::erase_if(line->second, [id](const Place& place) { return !place.call && place.id == id; });
}

std::vector<CallOrder::Key> CallOrder::give_up() {
  std::vector<Key> keys;
  for (auto& [key, places] : lines_) {
    std::deque<Place> there;
    for (Place& place : places) {
      if (place.call) there.push_back(std::move(place));
    }
    places = std::move(there);
    keys.push_back(key);
  }
  return keys;
}

}  // namespace batchrpc
