#include "profile/gathering.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/node/node_access.hpp"
#include "batchrpc/trace/record_sink.hpp"
#include "node/recorded_calls.hpp"

namespace batchrpc::profile {
namespace {

using recorded_calls::Page;

Future<Page> ask(NodeCore& node, const std::string& peer, std::string_view function,
                 std::uint64_t from_store, std::uint64_t from_call, Duration timeout) {
  detail::OutgoingOptions how;
  how.timeout = timeout;
  return detail::send_call<Page, std::uint64_t, std::uint64_t>(
      detail::SubmitTo{&node, peer},
      detail::function_key(function, signature<Page, std::uint64_t, std::uint64_t>()),
      std::move(how), from_store, from_call);
}

// The times of a request and its answer, as a sample of the clocks.
CallRecord clock_sample(const NodeCore& core, const std::string& peer, TimePoint sent,
                        const Page& page) {
  CallRecord sample;
  sample.caller.node = core.name();
  sample.callee.node = peer;
  sample.called = sample.encoded = sample.sent = sent;
  sample.received = TimePoint(Duration(page.received));
  sample.begun = sample.received;
  sample.finished = TimePoint(Duration(page.finished));
  sample.replied = sample.ended = core.loop()->now();
  return sample;
}

// The store of a page that is not empty; it ends within the store, or where the next one begins.
std::uint64_t store_of(const Page& page) {
  return page.next_call == 0 ? page.next_store - 1 : page.next_store;
}

// Removes the calls for which the preceding ones leave no room, including calls caused by others.
// Returns how many calls and operators it removed.
std::uint64_t trim(std::vector<CallRecord>& calls, std::size_t& room) {
  std::uint64_t left_out = 0;
  std::vector<CallRecord> kept;
  for (CallRecord& call : calls) {
    const std::size_t events = 1 + call.operators.size();
    if (events > room) {
      left_out += detail::all_events_of(call);
      continue;
    }
    room -= events;
    left_out += trim(call.calls, room);
    kept.push_back(std::move(call));
  }
  calls = std::move(kept);
  return left_out;
}

}  // namespace

Future<Told> ask_for_recorded(std::shared_ptr<NodeCore> node, std::string peer,
                              std::size_t max_events, TimePoint deadline) {
  Told told;
  std::size_t room = max_events;
  std::size_t room_again = max_events;  // for calls that other profilers of the peer have, too
  std::set<std::uint64_t> kept;         // span ids; other profilers of the peer have the same calls
  std::uint64_t from_store = 0;
  std::uint64_t from_call = 0;
  const auto take_page = [&](Page& page) {
    Told::OfStore& store = told.stores[store_of(page)];
    store.left_out += page.left_out;
    for (wire::CallBody& body : page.calls) {
      CallRecord call = wire::record_of(std::move(body));
      const std::uint64_t span = call.span.span_number();
      const std::size_t events = detail::events_of(call);
      if (kept.contains(span) && events <= room_again) {
        room_again -= events;
        store.calls.push_back(std::move(call));  // merged into one later
      } else if (events > room) {
        store.left_out += detail::all_events_of(call);
        room = 0;
      } else {
        room -= events;
        if (span != 0) kept.insert(span);
        store.calls.push_back(std::move(call));
      }
    }
  };
  bool more = true;
  while (more) {
    const TimePoint sent = node->loop()->now();
    if (sent >= deadline) {
      if (room == 0) break;  // only the counting is missing
      throw TimedOut("it did not send all of its records in time", false);
    }
    std::optional<Page> page;
    try {
      auto asked = ask(*node, peer, room == 0 ? recorded_calls::kRest : recorded_calls::kRecorded,
                       from_store, from_call, deadline - sent);
      page = co_await std::move(asked);
    } catch (const TimedOut&) {
      if (room == 0) break;
      throw;
    }
    told.clock_samples.push_back(clock_sample(*node, peer, sent, *page));
    told.sampled = std::max(told.sampled, page->sampled);
    if (!page->calls.empty() || page->left_out > 0) take_page(*page);
    more = page->more;
    const std::pair next(page->next_store, page->next_call);
    if (more && next <= std::pair(from_store, from_call))
      throw BadMessage("its recorded calls do not go on");
    std::tie(from_store, from_call) = next;
  }
  if (more) told.asked_before = from_store;
  co_return told;
}

void GatheredPeer::take(std::uint64_t incarnation, Told&& told) {
  std::map<std::uint64_t, std::uint64_t> left_out;
  for (auto& [number, store] : told.stores)
    left_out[number] = store.left_out + keep(std::move(store.calls));
  for (const auto& [number, count] : left_out_) {
    const auto again = left_out.find(number);
    if (incarnation == incarnation_ && again != left_out.end()) {
      again->second = std::max(again->second, count);  // dropped records may be missing now
    } else if (incarnation == incarnation_ && number >= told.asked_before) {
      left_out.emplace(number, count);
    } else {
      left_out_before_ += count;
    }
  }
  incarnation_ = incarnation;
  left_out_ = std::move(left_out);
  recording_.left_out = left_out_before_;
  for (const auto& [number, count] : left_out_)
    recording_.left_out += count;
  recording_.sampled = std::max(recording_.sampled, told.sampled);
  recording_.clock_samples = std::move(told.clock_samples);  // clocks drift: use the latest samples
}

// Returns the number of records without room; earlier records take precedence.
std::uint64_t GatheredPeer::keep(std::vector<CallRecord>&& calls) {
  Recording more;
  more.calls = std::move(calls);
  merge(recording_, std::move(more));
  std::size_t room = max_events_;
  return trim(recording_.calls, room);
}

}  // namespace batchrpc::profile
