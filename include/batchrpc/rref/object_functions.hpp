#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/rref/object_names.hpp"
#include "batchrpc/rref/reference.hpp"

/// Functions that an owner exposes for objects behind RRefs: how they are created, and how their
/// methods run.
namespace batchrpc {

/// How many methods of one object of the class T run at once. If there are several, their calls are
/// taken in order, but two that are taken at once may enter their methods in another order. To let
/// more than one run, say so after the class, before it is exposed. A derived class says it again:
///
///     template <>
///     inline constexpr std::size_t batchrpc::methods_at_once<ReplayBuffer> = 4;
template <class T>
inline constexpr std::size_t methods_at_once = 1;

}  // namespace batchrpc

namespace batchrpc::detail {

// Works as printed_name does for functions.
template <class T>
constexpr auto printed_type() {
  std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view kMark = "T = ";
  text.remove_prefix(text.find(kMark) + kMark.size());
  return text.substr(0, text.find_first_of(";]"));
}

/// The name of a class as the compiler prints it, without spaces and the inline namespace of
/// std::string. Names of integer types among template arguments differ between g++ and clang.
template <class T>
struct ClassName {
  static constexpr std::string_view kPrinted = printed_type<T>();
  struct Text {
    std::array<char, kPrinted.size()> letters{};
    std::size_t size = 0;
    bool is_plain = true;  // also the names between < and > are
  };
  static constexpr Text kText = [] {
    constexpr std::string_view kInline = "__cxx11::";
    Text text;
    for (std::size_t i = 0; i < kPrinted.size(); ++i) {
      const char letter = kPrinted[i];
      if (kPrinted.substr(i).starts_with(kInline)) {
        i += kInline.size() - 1;
      } else if (letter != ' ') {
        text.letters[text.size++] = letter;
        const bool of_arguments =
            text.size > 1 && (letter == '<' || letter == ',' || letter == '>');
        text.is_plain = text.is_plain && (of_arguments || is_plain_name({&letter, 1}));
      }
    }
    return text;
  }();
};

/// Returns the qualified name of a class, with its template arguments.
template <class T>
constexpr std::string_view class_name() {
  static_assert(ClassName<T>::kText.is_plain,
                "this class has no name that another program could use: give it a name outside of "
                "any function and anonymous namespace, whose template arguments are classes or "
                "numbers");
  return {ClassName<T>::kText.letters.data(), ClassName<T>::kText.size};
}

template <class T>
constexpr ObjectClass object_class() {
  static_assert(methods_at_once<T> >= 1, "at least one method of an object runs at once");
  return {class_name<T>(), methods_at_once<T>};
}

template <class T>
const std::string& create_name() {
  static const auto& name = *new std::string(std::string(kCreatePrefix).append(class_name<T>()));
  return name;
}
template <class T>
std::string value_name() {
  return std::string(kValuePrefix).append(class_name<T>());
}
inline std::string method_name(std::string_view name) {
  return std::string(kMethodPrefix).append(name);
}
// Returns the name that errors give to the constructor of a T, or of an implementation of T.
template <class T>
std::string_view constructor_text() {
  static const auto& text = *new std::string("the constructor of " + std::string(class_name<T>()));
  return text;
}
// Returns the name on the wire of the factory `F`: a function, or a method of an object.
template <auto F>
std::string factory_name() {
  return std::string(std::is_member_function_pointer_v<decltype(F)> ? kOpenPrefix : kCreatePrefix)
      .append(function_name<F>());
}
// Finds the class of the object that a factory creates from its return type: the object or a
// pointer.
template <class R>
struct MadeObject {
  using Class = R;
  static std::shared_ptr<void> wrap(R&& made) { return std::make_shared<R>(std::move(made)); }
};
template <class T>
struct MadeObject<std::shared_ptr<T>> {
  using Class = T;
  static std::shared_ptr<void> wrap(std::shared_ptr<T>&& made) { return std::move(made); }
};
template <class T>
struct MadeObject<std::unique_ptr<T>> {
  using Class = T;
  static std::shared_ptr<void> wrap(std::unique_ptr<T>&& made) {
    return std::shared_ptr<T>(std::move(made));
  }
};
template <class R>
struct MadeObject<Future<R>> : MadeObject<R> {};

// Converts a factory's result to a future of the object.
template <class R>
Future<std::shared_ptr<void>> object_of(R&& made) {
  return make_ready_future<std::shared_ptr<void>>(MadeObject<R>::wrap(std::move(made)));
}
template <class R>
Future<std::shared_ptr<void>> object_of(Future<R>&& made) {
  return std::move(made).then([](R value) { return MadeObject<R>::wrap(std::move(value)); });
}

template <class Derived, class Base>
std::shared_ptr<void> upcast(const std::shared_ptr<void>& object) {
  return std::shared_ptr<Base>(std::static_pointer_cast<Derived>(object));
}

// The function behind a peer's creation of an object. `make(arguments)` creates it, and returns a
// Future<std::shared_ptr<void>>.
template <class T, class Make, class... Params>
struct Creation {
  Make make;
  std::string_view maker;

  Future<void> operator()(ObjectId object, Params... arguments) const {
    Promise<void> promise;
    Future<void> future = promise.get_future();
    const CallContext* const context = CallContext::current();
    create_object(
        object, object_class<T>(), maker,
        [make = make, context = context != nullptr ? *context : CallContext(),
         ... arguments = std::move(arguments)]() mutable {
          const ContextScope scope(context);
          return make(std::move(arguments)...);
        },
        [promise = std::move(promise)](Result<void> result) mutable {
          promise.set_result(std::move(result));
        });
    return future;
  }
  [[nodiscard]] ReceivePlan announce(Decoder& arguments,
                                     const std::shared_ptr<TransferGate>& /*gate*/) const {
    const auto [object] = decode_struct<ObjectId>(arguments, wire::kBodyPointer - 1);
    return {.kept = expect_object(object)};
  }
};

// The same for a factory that is a method of another object, which the call names first.
template <class T, class Make, class... Params>
struct MemberCreation {
  Make make;  // (object, arguments...): Future<std::shared_ptr<void>>
  std::string_view maker;

  Future<void> operator()(ObjectId of, ObjectId object, Params... arguments) const {
    const auto pass_on = [](Future<std::shared_ptr<void>> future) { return future; };
    return Creation<T, decltype(pass_on), Future<std::shared_ptr<void>>>{pass_on, maker}(
        object, make(of, std::move(arguments)...));
  }
  [[nodiscard]] ReceivePlan announce(Decoder& arguments,
                                     const std::shared_ptr<TransferGate>& /*gate*/) const {
    const auto [of, object] = decode_struct<ObjectId, ObjectId>(arguments, wire::kBodyPointer - 1);
    return {.kept = expect_object(object)};
  }
};

// Runs `method(object)` on an object when its turn comes, and completes the future with the result.
template <class R, class T, class Method>
Future<R> call_object(ObjectId id, Method method) {
  Promise<R> promise;
  Future<R> future = promise.get_future();
  const CallContext* context = CallContext::current();
  run_on_object(id, class_name<T>(),
                [promise = std::move(promise), method = std::move(method),
                 context = context != nullptr ? *context : CallContext()](
                    Result<std::shared_ptr<void>> object) mutable {
                  if (!object) {
                    promise.set_error(std::make_exception_ptr(DidNotRun{object.error()}));
                    return;
                  }
                  if (const std::exception_ptr over = ContextAccess::over(context)) {
                    promise.set_error(std::make_exception_ptr(DidNotRun{over}));
                    return;
                  }
                  try {
                    const auto self = std::static_pointer_cast<T>(object.value());
                    std::optional<ContextScope> scope(context);
                    if constexpr (std::is_void_v<decltype(method(*self))>) {
                      method(*self);
                      promise.set_value();
                    } else if constexpr (Unwrapped<decltype(method(*self))>::kAsynchronous) {
                      // The object and the arguments live until the future is ready: a coroutine
                      // may refer to them.
                      auto running = std::make_unique<Method>(std::move(method));
                      Future<R> pending = (*running)(*self);
                      scope.reset();
                      if (!pending.valid())
                        throw InvalidArgument("the method returned an empty future");
                      std::move(pending).then(
                          [self, running = std::move(running), promise = std::move(promise)](
                              Result<R> result) mutable { promise.set_result(std::move(result)); });
                    } else {
                      promise.set_value(method(*self));
                    }
                  } catch (...) {
                    promise.set_error(std::current_exception());
                  }
                });
  return future;
}

// A method that is a Batcher or a similar member that takes calls and answers them later. Each call
// is passed on when its turn on the object comes.
template <auto M, class T, class R, class... Params>
struct BatchedMethod {
  std::shared_ptr<Host> host;

  Future<R> operator()(ObjectId object, Params... arguments) const;  // only states the signature

  void exposed_on(const std::shared_ptr<Host>& /*host*/) const {}
  void take_call(RunningCall&& incoming) const {
    try {
      incoming.keep();
      Decoder arguments = incoming.arguments();
      const auto [object] = decode_struct<ObjectId>(arguments, wire::kBodyPointer - 1);
      const CallContext context = incoming.context();
      const ContextScope scope(context);
      run_on_object(object, class_name<T>(),
                    [host = host, call = DeferredCall(std::move(incoming))](
                        const Result<std::shared_ptr<void>>& found) mutable {
                      if (!found) {
                        call.fail(std::make_exception_ptr(DidNotRun{found.error()}));
                        return;
                      }
                      const auto self = std::static_pointer_cast<T>(found.value());
                      HostedAccess::exposed_on((*self).*M, host);
                      HostedAccess::take_call<ObjectId>((*self).*M, std::move(call), self);
                    });
    } catch (...) {
      incoming.fail(std::current_exception());
    }
  }
  [[nodiscard]] ReceivePlan announce(Decoder& arguments,
                                     const std::shared_ptr<TransferGate>& gate) const {
    const auto [object] = decode_struct<ObjectId>(arguments, wire::kBodyPointer - 1);
    const auto self = std::static_pointer_cast<T>(find_object(object, class_name<T>()));
    if (!self) return {};  // not created yet: received as other calls are
    HostedAccess::exposed_on((*self).*M, host);
    return HostedAccess::announce<ObjectId>((*self).*M, arguments, gate);
  }
};

}  // namespace batchrpc::detail
