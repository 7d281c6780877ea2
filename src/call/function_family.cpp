#include "batchrpc/call/function_family.hpp"

#include <algorithm>

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

FunctionFamily::FunctionFamily(std::string function_name, ExposeOptions how, std::size_t most)
    : ExposedFunction(std::move(function_name), "any", std::move(how)), most_(most) {}

FunctionFamily::~FunctionFamily() = default;

std::shared_ptr<ExposedFunction> FunctionFamily::with_signature(std::string_view called_as) {
  const auto take_known = [&]() -> std::shared_ptr<ExposedFunction> {
    const auto at = std::find_if(made_.begin(), made_.end(), [&](const auto& function) {
      return function->signature == called_as;
    });
    if (at == made_.end()) return nullptr;
    made_.splice(made_.begin(), made_, at);
    return made_.front();
  };
  {
    const std::lock_guard lock(mutex_);
    if (auto known = take_known()) return known;
  }
  auto function = make(called_as);
  function->counters = counters;
  function->shown = shown;
  std::shared_ptr<ExposedFunction> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  if (auto known = take_known()) return known;  // another thread was faster
  made_.push_front(function);
  if (taken_back) function->taken_back = true;
  if (made_.size() > most_) {
    dropped = std::move(made_.back());
    made_.pop_back();
    dropped->taken_back = true;  // sessions ask again, so that there is one of each signature
  }
  return function;
}

void FunctionFamily::take_back() noexcept {
  const std::lock_guard lock(mutex_);
  ExposedFunction::take_back();
  for (const auto& function : made_)
    function->take_back();
}

void FunctionFamily::run(RunningCall& call) noexcept {
  call.fail(std::make_exception_ptr(BadSignature("'" + name + "' was called without a signature")));
}

}  // namespace batchrpc::detail
