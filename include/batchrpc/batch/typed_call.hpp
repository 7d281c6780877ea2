#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/batcher_intake.hpp"
#include "batchrpc/call/caller.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/future/promise.hpp"

/// A batcher's calls with their types: the elements of the queue, and how they are answered.
namespace batchrpc::detail {

/// One result for many calls, encoded when the first remote call needs it.
template <class Value>
class SharedReply {
 public:
  explicit SharedReply(const Value& value) : value_(value) {}

  [[nodiscard]] const Value& value() const noexcept { return value_; }
  /// Fills `encoder` with the result.
  void encode(Encoder& encoder) {
    if (!master_) {
      encode_result<Value>(encoder, value_);
      if (encoder.one_use()) return;  // references are counted by the message
      master_.emplace(wire::kEnvelopeWords);
      master_->words() = encoder.words();
      master_->payloads() = encoder.payloads();
    } else {
      encoder.words() = master_->words();
      encoder.payloads() = master_->payloads();
    }
  }

 private:
  const Value& value_;
  std::optional<Encoder> master_;
};

/// The kinds of calls.
inline constexpr std::in_place_index_t<0> kOfOne{};
inline constexpr std::in_place_index_t<1> kOfMany{};

/// The arguments of a call of many rows.
template <class... Args>
struct ManyArguments {
  using type = std::tuple<ManyRows<Args>...>;
};
/// Rows without arguments cannot tell how many they are, so there are no such calls.
struct NoSuchCall {};
template <>
struct ManyArguments<> {
  using type = NoSuchCall;
};

/// A call of a batcher for functions R(Args...), with one row or many.
template <class R, class... Args>
class TypedCall : public CancellableCall {
 public:
  using One = std::tuple<Args...>;
  using Many = typename ManyArguments<Args...>::type;

  /// Creates a call of one row (kOfOne) or of many (kOfMany).
  template <std::size_t Kind, class Arguments>
  TypedCall(std::in_place_index_t<Kind> kind, Arguments&& row_or_rows)
      : of_one(Kind == 0), arguments_(kind, std::forward<Arguments>(row_or_rows)) {}

  /// Return the arguments; use the one that matches the kind. Not valid after drop_arguments().
  /// @{
  [[nodiscard]] One& one() { return std::get<0>(arguments_); }
  [[nodiscard]] Many& many() { return std::get<1>(arguments_); }
  /// @}

  /// Complete the call; use the one that matches its kind. Return whether the caller gets a result.
  /// Otherwise it gets an error: the given one, or the reason why the result cannot be moved or
  /// encoded.
  /// @{
  virtual bool complete(Result<R>&& /*result*/) noexcept { return false; }
  virtual bool complete_many(Result<ManyRows<R>>&& /*results*/) noexcept { return false; }
  virtual bool complete_shared(SharedReply<R>& /*reply*/) noexcept { return false; }
  /// @}
  ///
  /// Releases the memory of the arguments, which have been used.
  virtual void drop_arguments() noexcept { arguments_.template emplace<2>(); }

  const bool of_one;

 private:
  std::variant<One, Many, std::monostate> arguments_;
};

/// Returns what the call's rows must have in common with others to be stacked with them. Throws the
/// error with which the call is to fail.
template <class R, class... Args>
std::string kind_of(TypedCall<R, Args...>& call) {
  std::string kind;
  if (call.of_one) {
    std::apply([&](const Args&... row) { (BatchTraits<Args>::append_kind(row, kind), ...); },
               call.one());
  } else if constexpr (sizeof...(Args) > 0) {
    std::apply(
        [&](const auto&... rows) { (BatchTraits<Args>::append_kind_of_all(rows, kind), ...); },
        call.many());
  }
  return kind;
}

/// Completes a call with the one result of its batch. Returns whether its caller gets it.
template <class R, class... Args>
bool complete_by_shared(TypedCall<R, Args...>& call, SharedReply<R>& reply) {
  static_assert(std::is_copy_constructible_v<R>,
                "one result for all callers must be copyable: each caller gets a copy");
  if (call.of_one) return call.complete_shared(reply);
  return call.complete_many(BatchTraits<R>::repeat(reply.value(), call.rows));
}

/// A reply that completes a future of this process.
template <class Value>
class LocalReply {
 public:
  [[nodiscard]] Future<Value> get_future() { return promise_.get_future(); }
  bool operator()(Result<Value>&& result) noexcept {
    const bool has_value = result.has_value();
    try {
      promise_.set_result(std::move(result));
      return has_value;
    } catch (...) {  // the result cannot be moved
      fail(std::current_exception(), true);
      return false;
    }
  }
  bool shared(SharedReply<Value>& reply) noexcept requires std::is_copy_constructible_v<Value> {
    try {
      promise_.set_value(reply.value());
      return true;
    } catch (...) {
      fail(std::current_exception(), true);
      return false;
    }
  }
  void fail(const std::exception_ptr& error, bool began) noexcept {
    if (promise_.pending()) promise_.set_error(began ? as_of_reply(error) : error);
  }
  void drop_arguments() noexcept {}

 private:
  Promise<Value> promise_;
};

/// A reply to a peer; its call keeps the batcher.
template <class Value>
class RemoteReply {
 public:
  RemoteReply(RunningCall&& call, std::shared_ptr<const void> batcher,
              std::shared_ptr<const void> owner)
      : batcher_(std::move(batcher)), owner_(std::move(owner)), call_(std::move(call)) {}
  bool operator()(Result<Value>&& result) noexcept {
    return answer(result.error(),
                  [&](Encoder& encoder) { encode_result<Value>(encoder, *result); });
  }
  bool shared(SharedReply<Value>& reply) noexcept {
    return answer(nullptr, [&](Encoder& encoder) { reply.encode(encoder); });
  }
  void fail(const std::exception_ptr& error, bool began) noexcept { call_.fail(error, began); }
  void drop_arguments() noexcept { call_.drop_arguments(); }

 private:
  template <class Encode>
  bool answer(const std::exception_ptr& error, const Encode& encode) noexcept {
    if (error) {
      fail(error, true);
      return false;
    }
    try {
      const EncoderLease encoder;
      encode(*encoder);
      call_.reply(*encoder);
      return true;
    } catch (...) {
      fail(std::current_exception(), true);
      return false;
    }
  }

  std::shared_ptr<const void> batcher_;
  std::shared_ptr<const void> owner_;  // the object whose method the batcher is, if any
  DeferredCall call_;
};

/// A call with its arguments and its reply: a Reply of R, or of ManyRows<R>.
template <class Reply, class R, class... Args>
class AnsweredCall final : public TypedCall<R, Args...> {
  using Base = TypedCall<R, Args...>;

 public:
  /// `made`: the constructor arguments of the reply.
  template <std::size_t Kind, class Arguments, class... Made>
  AnsweredCall(std::in_place_index_t<Kind> kind, Arguments&& row_or_rows, Made&&... made)
      : Base(kind, std::forward<Arguments>(row_or_rows)), reply(std::forward<Made>(made)...) {}

  bool complete(Result<R>&& result) noexcept override {
    if constexpr (requires { reply(std::move(result)); }) return reply(std::move(result));
    return false;
  }
  bool complete_many(Result<ManyRows<R>>&& results) noexcept override {
    if constexpr (requires { reply(std::move(results)); }) return reply(std::move(results));
    return false;
  }
  bool complete_shared(SharedReply<R>& shared) noexcept override {
    if constexpr (requires { reply.shared(shared); }) return reply.shared(shared);
    return false;
  }
  void fail(const std::exception_ptr& error, bool began) noexcept override {
    reply.fail(error, began);
  }
  void drop_arguments() noexcept override {
    Base::drop_arguments();
    reply.drop_arguments();
  }

  Reply reply;
};

}  // namespace batchrpc::detail
