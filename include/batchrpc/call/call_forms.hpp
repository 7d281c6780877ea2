#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "batchrpc/call/function_traits.hpp"
#include "batchrpc/call/mistake.hpp"

namespace batchrpc::detail {

/// The forms of a call by a handle of a peer, of several peers or of an object. A `Handle` has
/// call_function<F>(arguments...) and call_named<Function>(name, arguments...).
template <class Handle>
class CallForms {
 public:
  /// Calls a function that was exposed with expose<F>(), as Node::call does.
  template <auto F, class... Args>
  requires CallableWith<F, ObjectOf<Handle>, Passed<Handle, Args>...>
  auto call(Args&&... args) const {
    return handle().template call_function<F>(std::forward<Args>(args)...);
  }
  /// Calls a function by name: `worker.call<int(int, int)>("add", 1, 2)`.
  template <class Function, class... Args>
  requires CallableByName<Function, Passed<Handle, Args>...>
  auto call(std::string_view function, Args&&... args) const {
    return handle().template call_named<Function>(function, std::forward<Args>(args)...);
  }

  /// @cond
  template <auto F, class... Args,
            class Why = WhyNotCalled<TraitsOf<F>, ObjectOf<Handle>, Passed<Handle, Args>...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL Refused call(Args&&... args)
  const;
  template <class Function, class... Args,
            class Why = WhyNotCalled<FunctionTraits<Function>, void, Passed<Handle, Args>...>>
  requires(std::is_function_v<Function> && !std::is_void_v<Why>) BATCHRPC_NO_CALL Refused
      call(std::string_view function, Args&&... args)
  const;
  template <class... Args>
  BATCHRPC_NAME_THE_FUNCTION Refused call(Args&&... args) const;
  /// @endcond

 private:
  [[nodiscard]] const Handle& handle() const noexcept { return static_cast<const Handle&>(*this); }
};

/// The forms of a notification. A `Handle` has notify_function<F>(arguments...) and
/// notify_named<Function>(name, arguments...).
template <class Handle>
class NotifyForms {
 public:
  /// Sends a call whose result nobody waits for. It runs at most once, and nothing reports whether
  /// it ran. Throws the errors that occur before it is queued.
  template <auto F, class... Args>
  requires CallableWith<F, ObjectOf<Handle>, Args...>
  void notify(Args&&... args) const {
    handle().template notify_function<F>(std::forward<Args>(args)...);
  }
  /// The same by name.
  template <class Function, class... Args>
  requires CallableByName<Function, Args...>
  void notify(std::string_view function, Args&&... args) const {
    handle().template notify_named<Function>(function, std::forward<Args>(args)...);
  }

  /// @cond
  template <auto F, class... Args, class Why = WhyNotCalled<TraitsOf<F>, ObjectOf<Handle>, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL void notify(Args&&... args) const;
  template <class Function, class... Args,
            class Why = WhyNotCalled<FunctionTraits<Function>, void, Args...>>
  requires(std::is_function_v<Function> && !std::is_void_v<Why>) BATCHRPC_NO_CALL
      void notify(std::string_view function, Args&&... args) const;
  /// @endcond

 private:
  [[nodiscard]] const Handle& handle() const noexcept { return static_cast<const Handle&>(*this); }
};

}  // namespace batchrpc::detail
