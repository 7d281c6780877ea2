#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/batch_call_options.hpp"
#include "batchrpc/batch/batch_rules.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/batcher_intake.hpp"
#include "batchrpc/batch/row_memory.hpp"
#include "batchrpc/batch/typed_call.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc::detail {

/// The type that gives rows of type T memory to be received into. Most types have none.
struct NoReceiver {};
template <class T>
struct ReceiverOf {
  using type = NoReceiver;
  using Announced = T;
};
template <class T>
requires requires { typename BatchTraits<T>::Receiver; }
struct ReceiverOf<T> {
  using type = typename BatchTraits<T>::Receiver;
  using Announced = typename BatchTraits<T>::Announced;
};

/// The arguments that are encoded before a call's own. No memory is chosen for them.
template <class... T>
struct Before {};

/// Returns `all` without its first N elements.
template <std::size_t N, class... T>
auto without_first(std::tuple<T...>&& all) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<std::tuple_element_t<N + I, std::tuple<T...>>...>(
        std::get<N + I>(std::move(all))...);
  }
  (std::make_index_sequence<sizeof...(T) - N>());
}

/// The state that the copies of one batcher share. Decodes calls, and applies the rules to them.
template <class R, class... Args>
class BatcherState final : public BatcherIntake,
                           public std::enable_shared_from_this<BatcherState<R, Args...>> {
  using Call = TypedCall<R, Args...>;

 public:
  BatchRules<Args...> rules;

  /// Announces that a large call is arriving, and returns when and where to receive it. The node's
  /// `arguments` have no payloads.
  template <class Kind, class... First>
  [[nodiscard]] ReceivePlan announce(Kind /*kind*/, Before<First...> before,
                                     [[maybe_unused]] Decoder& arguments,
                                     const std::shared_ptr<TransferGate>& gate) const {
    ReceivePlan receive_plan;
    receive_plan.kept = core->expect_transfer(gate->bytes(), gate, receive_plan.held);
    if constexpr (std::is_same_v<Kind, std::remove_cv_t<decltype(kOfOne)>> &&
                  (requires { typename BatchTraits<Args>::Receiver; } || ...)) {
      try {
        const auto row = decode_announced(before, arguments);
        auto parts = parts_of(row, std::index_sequence_for<Args...>{});
        if (!parts.empty()) receive_plan.target = RowMemories::target(std::move(parts));
      } catch (const Error&) {  // other arguments are payloads: they are received into the
                                // library's memory
      }
    }
    return receive_plan;
  }

  // Takes a call of this process.
  template <class Value, class Kind, class Arguments>
  Future<Value> submit(const BatchCallOptions& options, Kind kind, Arguments&& arguments) const {
    using Made = AnsweredCall<LocalReply<Value>, R, Args...>;
    auto call = std::make_unique<Made>(kind, std::move(arguments));
    Future<Value> future = call->reply.get_future();
    add_own(std::move(call), options);
    return future;
  }

  // Takes a peer's call. `owner` lives until that is answered.
  template <class Value, class... Params, class Kind, class... First>
  void take(Kind kind, Before<First...> before, RunningCall&& incoming,
            std::shared_ptr<const void> owner) const noexcept {
    using Signature = CallSignature<Value, std::tuple<First..., Params...>>;
    using Made = AnsweredCall<RemoteReply<Value>, R, Args...>;
    try {
      if constexpr (std::is_same_v<Kind, std::remove_cv_t<decltype(kOfOne)>>) {
        place_payloads(before, incoming, std::index_sequence_for<Args...>{});
      }
      incoming.keep();
      std::shared_ptr<void> transfer = incoming.take_receive_plan();
      Decoder decoder = incoming.arguments();
      auto arguments = without_first<sizeof...(First)>(Signature::decode(decoder));
      const std::size_t bytes = incoming.bytes();
      const CallContext context = incoming.context();
      auto call = std::make_unique<Made>(kind, std::move(arguments), std::move(incoming),
                                         this->shared_from_this(), std::move(owner));
      call->bytes = bytes;
      call->transfer = std::move(transfer);
      add_peers(std::move(call), context);
    } catch (...) {
      incoming.fail(std::current_exception());
    }
  }

 private:
  template <class Announced, std::size_t... I>
  std::vector<RowMemories::Part> parts_of(const Announced& row, std::index_sequence<I...>) const {
    std::vector<RowMemories::Part> parts;
    (add_part<Args>(std::get<I>(row), std::get<I>(receivers_), parts), ...);
    return parts;
  }
  template <class T, class Announced, class Receiver>
  void add_part(const Announced& row, [[maybe_unused]] const Receiver& receiver,
                std::vector<RowMemories::Part>& parts) const {
    if constexpr (requires { BatchTraits<T>::announced(row); }) {
      const AnnouncedPayload payload = BatchTraits<T>::announced(row);
      if (payload.bytes == 0) return;
      parts.push_back({payload, [receiver, bytes = payload.bytes, weak = this->weak_from_this()] {
                         const auto self = weak.lock();
                         return self ? self->memory_for(receiver, bytes) : RowMemory();
                       }});
    }
  }
  // A reducer's rows lie alone, in memory that later rows use again.
  template <class Receiver>
  RowMemory memory_for(const Receiver& receiver, std::size_t bytes) const {
    const auto options = core->options();
    return receiver.take(bytes, reduces ? 1 : options->max_size, options->device,
                         options->max_queue_bytes);
  }

  template <class... First>
  static auto decode_announced(Before<First...> /*before*/, Decoder& arguments) {
    using Announced =
        CallSignature<R, std::tuple<First..., typename ReceiverOf<Args>::Announced...>>;
    return without_first<sizeof...(First)>(Announced::decode(arguments));
  }

  // Copies small payloads, which have arrived already, to their place in the batch.
  template <std::size_t... I, class... First>
  void place_payloads([[maybe_unused]] Before<First...> before, RunningCall& call,
                      std::index_sequence<I...>) const {
    if constexpr ((requires { typename BatchTraits<Args>::Receiver; } || ...)) {
      auto& payloads = call.payloads();
      if (payloads.empty()) return;
      if constexpr (sizeof...(Args) == 1) {  // no need to find out which argument it belongs to
        if (payloads.size() == 1) return place(std::get<0>(receivers_), payloads[0]);
      }
      Decoder decoder = call.arguments();
      const auto row = decode_announced(before, decoder);
      (place_payload<Args>(std::get<I>(row), std::get<I>(receivers_), call), ...);
    }
  }
  template <class T, class Announced, class Receiver>
  void place_payload([[maybe_unused]] const Announced& row,
                     [[maybe_unused]] const Receiver& receiver,
                     [[maybe_unused]] RunningCall& call) const {
    if constexpr (requires { BatchTraits<T>::announced(row); }) {
      const AnnouncedPayload payload = BatchTraits<T>::announced(row);
      if (payload.bytes == 0 || payload.index >= call.payloads().size()) return;
      Bytes& bytes = call.payloads()[payload.index];
      if (bytes.size() == payload.bytes) place(receiver, bytes);
    }
  }
  template <class Receiver>
  void place(const Receiver& receiver, Bytes& bytes) const {
    if (bytes.owner() || bytes.empty()) return;
    const RowMemory memory = memory_for(receiver, bytes.size());
    std::copy(bytes.span().begin(), bytes.span().end(), memory.room.begin());
    bytes = Bytes(memory.owner, memory.room);
  }

  void apply_rules(BatchCall& base) const override {
    auto& call = static_cast<Call&>(base);
    if constexpr (sizeof...(Args) > 0) {
      if (!call.of_one) call.rows = rows_of(call.many());
    }
    if (call.bytes == 0) call.bytes = bytes_of(call);
    std::string kind = detail::kind_of(call);
    if (!rules.key && !reduces) call.key = std::move(kind);
    if (!rules.check && !rules.key && !rules.priority) return;
    if (call.of_one) {
      std::apply([&](const Args&... row) { apply_to_row(call, true, row...); }, call.one());
      return;
    }
    if constexpr (sizeof...(Args) > 0) {
      for (std::size_t i = 0; i < call.rows; ++i) {
        std::apply(
            [&](const auto&... rows) {
              apply_to_row(call, i == 0, BatchTraits<Args>::row(rows, i)...);
            },
            call.many());
      }
    }
  }
  void apply_to_row(Call& call, bool first, const Args&... row) const {
    if (rules.check) rules.check(row...);
    if (rules.key) {
      std::string key = std::move(rules.key(row...).text);
      if (!first && key != call.key) {
        throw InvalidArgument("the rows of one call have different keys (BatchRules::key): '" +
                              call.key + "' and '" + key + "'");
      }
      call.key = std::move(key);
    }
    if (rules.priority) {
      const int priority = rules.priority(row...);
      call.priority = first ? priority : std::max(call.priority, priority);
    }
  }

  template <class Columns>
  static std::size_t rows_of(const Columns& many) {
    return std::apply(
        [](const auto&... column) {
          const std::size_t counts[] = {BatchTraits<Args>::rows(column)...};
          for (const std::size_t count : counts) {
            if (count == counts[0]) continue;
            throw InvalidArgument("the arguments of a call of many rows have " +
                                  std::to_string(counts[0]) + " and " + std::to_string(count) +
                                  " rows; they must have the same number");
          }
          if (counts[0] == 0)
            throw InvalidArgument("a call of many rows has no rows; it needs at least one");
          return counts[0];
        },
        many);
  }
  static std::size_t bytes_of(Call& call) {
    if (call.of_one) {
      return std::apply(
          [](const Args&... row) { return (std::size_t{1} + ... + BatchTraits<Args>::bytes(row)); },
          call.one());
    }
    if constexpr (sizeof...(Args) > 0) {
      return std::apply(
          [](const auto&... rows) { return (BatchTraits<Args>::bytes_of_all(rows) + ...); },
          call.many());
    }
    return 1;
  }

  std::tuple<typename ReceiverOf<Args>::type...> receivers_;
};

}  // namespace batchrpc::detail
