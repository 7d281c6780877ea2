#include "recording/call_tracer.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/mixed.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "call/function_table.hpp"
#include "wire/frame.hpp"

namespace batchrpc {
namespace {

using detail::RecordSink;

// Passes a call on to several sinks.
class Several final : public RecordSink {
 public:
  explicit Several(std::vector<std::shared_ptr<RecordSink>> sinks) : sinks_(std::move(sinks)) {}
  void add(CallRecord&& record) noexcept override {
    for (std::size_t i = 1; i < sinks_.size(); ++i) {
      try {
        sinks_[i]->add(CallRecord(record));
      } catch (const std::bad_alloc&) {
        sinks_[i]->lost(detail::all_events_of(record));
      }
    }
    sinks_.front()->add(std::move(record));
  }
  void lost(std::size_t events) noexcept override {
    for (const auto& sink : sinks_)
      sink->lost(events);
  }
  [[nodiscard]] bool wants_record() const noexcept override {
    return std::any_of(sinks_.begin(), sinks_.end(),
                       [](const auto& sink) { return sink->wants_record(); });
  }
  [[nodiscard]] bool wants_operators() const noexcept override {
    return std::any_of(sinks_.begin(), sinks_.end(),
                       [](const auto& sink) { return sink->wants_operators(); });
  }

 private:
  const std::vector<std::shared_ptr<RecordSink>> sinks_;
};

// Combines the sinks into one; null if there are none.
std::shared_ptr<RecordSink> one_of(std::vector<std::shared_ptr<RecordSink>> sinks) {
  if (sinks.empty()) return nullptr;
  if (sinks.size() == 1) return std::move(sinks.front());
  return std::make_shared<Several>(std::move(sinks));
}

// Ends the call's range in the program's own profile.
class RangeOfCall final : public RecordSink {
 public:
  explicit RangeOfCall(std::shared_ptr<void> range) : range_(std::move(range)) {}
  void add(CallRecord&& /*record*/) noexcept override { range_.reset(); }
  void lost(std::size_t /*events*/) noexcept override {}
  [[nodiscard]] bool wants_record() const noexcept override { return false; }
  [[nodiscard]] bool wants_operators() const noexcept override { return false; }

 private:
  std::shared_ptr<void> range_;
};

template <class Id>
void write_id(Id& id, std::size_t at, std::uint64_t number) noexcept {
  for (std::size_t i = 0; i < 8; ++i)
    id[at + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
}

bool has_key(const detail::Metadata& metadata, std::string_view key) {
  return std::any_of(metadata.begin(), metadata.end(),
                     [&](const auto& entry) { return entry.first == key; });
}

}  // namespace

void CallTracer::add(std::shared_ptr<RecordSink> sink, std::uint64_t every, bool answered) {
  const std::lock_guard lock(mutex_);
  recorders_.push_back({.sink = std::move(sink), .every = every, .answered = answered});
  count_recorders();
}

void CallTracer::remove(const RecordSink& sink) {
  const std::lock_guard lock(mutex_);
  std::erase_if(recorders_, [&](const Recorder& recorder) { return recorder.sink.get() == &sink; });
  count_recorders();
}

void CallTracer::count_recorders() {
  count_.store(recorders_.size(), std::memory_order_relaxed);
  const auto answered = std::count_if(recorders_.begin(), recorders_.end(),
                                      [](const Recorder& recorder) { return recorder.answered; });
  answered_.store(static_cast<std::size_t>(answered), std::memory_order_relaxed);
}

std::shared_ptr<RecordSink> CallTracer::next_sink_of_answered() {
  std::vector<std::shared_ptr<RecordSink>> sinks;
  const std::lock_guard lock(mutex_);
  for (Recorder& recorder : recorders_) {
    if (recorder.answered && is_sampled(recorder)) sinks.push_back(recorder.sink);
  }
  return one_of(std::move(sinks));
}

void CallTracer::show(const std::shared_ptr<CallStore>& store, std::uint64_t every) {
  const std::lock_guard lock(mutex_);
  std::erase_if(stores_, [](const ShownStore& shown) { return shown.store.expired(); });
  stores_.push_back({store, next_store_++, every});
}

CallTracer::LivingStore CallTracer::first_store(std::uint64_t from) const {
  const std::lock_guard lock(mutex_);
  LivingStore first;
  for (const ShownStore& shown : stores_) {
    if (shown.number < from) continue;
    if (first.store) {
      first.more = first.more || !shown.store.expired();
    } else if (auto store = shown.store.lock()) {
      first = {.store = std::move(store), .number = shown.number, .every = shown.every};
    }
  }
  return first;
}

CallTracer::Shown CallTracer::shown(Position from, std::size_t max_events) const {
  const LivingStore of = first_store(from.store);
  if (!of.store) return {};
  const std::size_t first = of.number == from.store ? from.call : 0;
  Shown part{.calls = of.store->copy(first, max_events), .sampled = of.every};
  const std::size_t behind = first + part.calls.size();
  if (behind < of.store->size()) {
    part.next = {of.number, behind};
    part.more = true;
    return part;
  }
  part.next = {of.number + 1, 0};
  part.more = of.more;
  part.left_out = of.store->left_out();
  return part;
}

CallTracer::Shown CallTracer::rest(Position from) const {
  const LivingStore of = first_store(from.store);
  if (!of.store) return {};
  const std::uint64_t events = of.store->events(of.number == from.store ? from.call : 0);
  return {.next = {of.number + 1, 0},
          .more = of.more,
          .left_out = events + of.store->left_out(),
          .sampled = of.every};
}

// Random, so that calls which alternate are all seen.
bool CallTracer::is_sampled(const Recorder& recorder) noexcept {
  return recorder.every == 1 || next_id() % recorder.every == 0;
}

void CallTracer::add_recorders(std::vector<std::shared_ptr<RecordSink>>& sinks) {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  for (Recorder& recorder : recorders_) {
    if (is_sampled(recorder)) sinks.push_back(recorder.sink);
  }
}

void CallTracer::complete(std::shared_ptr<detail::OutgoingExtras>& extras, std::string_view caller,
                          std::string_view peer, std::string_view function) {
  if (!std::exchange(extras->may_be_recorded, false)) return;
  const detail::CallExtras* const outer = detail::ContextAccess::current_extras();
  std::vector<std::shared_ptr<RecordSink>> sinks;
  add_recorders(sinks);
  if (outer != nullptr && outer->recording) sinks.push_back(outer->recording);
  if (is_watched()) {
    const std::string name = "rpc_async#" + std::string(function) + "(" + std::string(caller) +
                             " -> " + std::string(peer) + ")";
    if (auto range = operators_->begin_range(name))
      sinks.push_back(std::make_shared<RangeOfCall>(std::move(range)));
  }
  if (outer != nullptr && outer->trace.valid() && !extras->parent.valid()) {
    extras->parent = outer->trace;
    extras->parent_is_call = outer->recording != nullptr;
  }
  if (outer != nullptr && extras->inherits) {
    const detail::Metadata own = extras->metadata;
    for (const auto& entry : outer->metadata) {
      if (has_key(own, entry.first)) continue;
      extras->metadata.push_back(entry);
      if (!wire::is_within_limits(extras->metadata)) extras->metadata.pop_back();
    }
  }
  extras->sink = one_of(std::move(sinks));
  if (!extras->sink && !extras->parent.valid() && extras->metadata.empty()) extras = nullptr;
}

std::uint64_t CallTracer::next_id() noexcept {
  const std::uint64_t number = ids_.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t id = mixed(seed_ + number * kGolden);
  return id != 0 ? id : 1;  // zero is not a valid id
}

TraceContext CallTracer::next_span(const TraceContext& parent, bool recorded) noexcept {
  TraceContext span = parent;
  if (!parent.valid()) {
    write_id(span.trace_id, 0, next_id());
    write_id(span.trace_id, 8, next_id());
    span.flags = 0;
  }
  if (recorded) span.flags |= 1U;
  write_id(span.span_id, 0, next_id());
  return span;
}

}  // namespace batchrpc
