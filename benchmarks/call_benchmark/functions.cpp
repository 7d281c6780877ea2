#include "call_benchmark/functions.hpp"

#include <batchrpc/wire/codec.hpp>
#include <batchrpc/wire/envelope.hpp>
#include <batchrpc/wire/structs.hpp>
#include <memory>
#include <stdexcept>
#include <utility>

namespace call_benchmark {

Payload echo_short(std::span<const std::byte> payload) { return {payload.begin(), payload.end()}; }

Payload echo_on_workers(std::span<const std::byte> payload) { return echo_short(payload); }

double scale_short(double factor, std::int64_t value, std::int32_t offset) {
  return factor * static_cast<double>(value) + offset;
}

double scale_on_workers(double factor, std::int64_t value, std::int32_t offset) {
  return scale_short(factor, value, offset);
}

void Held::reserve(std::int32_t count) {
  const std::lock_guard lock(mutex_);
  promises_.clear();
  promises_.resize(static_cast<std::size_t>(count));
  promises_.clear();
}

batchrpc::Future<std::int32_t> Held::hold(std::int32_t /*value*/) {
  batchrpc::Promise<std::int32_t> promise;
  auto future = promise.get_future();
  const std::lock_guard lock(mutex_);
  promises_.push_back(std::move(promise));
  return future;
}

std::int32_t Held::count() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int32_t>(promises_.size());
}

void Held::release() {
  std::vector<batchrpc::Promise<std::int32_t>> promises;
  {
    const std::lock_guard lock(mutex_);
    promises.swap(promises_);
  }
  for (batchrpc::Promise<std::int32_t>& promise : promises)
    promise.set_value(1);
}

void expose_functions(const batchrpc::Node& node) {
  const batchrpc::ExposeOptions brief{.short_handler = true};
  node.expose<&echo_short>(brief);
  node.expose<&echo_on_workers>();
  node.expose<&scale_short>(brief);
  node.expose<&scale_on_workers>();
  const auto held = std::make_shared<Held>();
  node.expose<&Held::reserve>(held, brief);
  node.expose<&Held::hold>(held, brief);
  node.expose<&Held::count>(held, brief);
  node.expose<&Held::release>(held);
  node.expose<&resident_bytes>();
}

namespace {

template <class... Values>
std::uint32_t frame_bytes(const Values&... values) {
  batchrpc::Encoder encoder(batchrpc::wire::kEnvelopeWords);
  batchrpc::encode_struct<Values...>(encoder, batchrpc::wire::kBodyPointer, values...);
  return static_cast<std::uint32_t>(encoder.words().size() * sizeof(batchrpc::Word));
}

}  // namespace

MessageSizes frame_sizes(Case which) {
  if (which == Case::payload64) {
    const std::uint32_t bytes = frame_bytes(Payload(kPayloadBytes));
    return {.request = bytes, .reply = bytes};
  }
  return {.request = frame_bytes(1.0, std::int64_t{1}, std::int32_t{1}), .reply = frame_bytes(1.0)};
}

}  // namespace call_benchmark
