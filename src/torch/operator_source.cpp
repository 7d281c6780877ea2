#include "batchrpc/torch/operator_source.hpp"

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/trace/operator_source.hpp"

// Records operators and a program's regions (RECORD_USER_SCOPE) with LibTorch's own hook for
// profilers, at::RecordFunction.
namespace batchrpc::detail {
namespace {

using c10::ThreadLocalDebugInfo;

struct Listening {
  OperatorSink* sink = nullptr;
  std::uint64_t thread = 0;  // the system's id
};
thread_local constinit Listening listening;

// An operator that has begun.
struct Open final : at::ObserverContext, Pooled {
  explicit Open(const Listening& by) : sink(by.sink), thread(by.thread), begin(by.sink->now()) {}

  OperatorSink* sink;
  std::uint64_t thread;
  TimePoint begin;
};

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& /*function*/) {
  // LibTorch copies callbacks, but not sinks, to threads that continue a thread's work.
  if (listening.sink == nullptr) return nullptr;
  return std::make_unique<Open>(listening);
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* const open = static_cast<const Open*>(context);
  // If another sink was set since then, the old sink may have been destroyed.
  if (open == nullptr || open->sink != listening.sink) return;
  OperatorRecord record;
  record.name = function.name();
  record.begin = open->begin;
  record.end = open->sink->now();
  record.thread = open->thread;
  open->sink->add(std::move(record));
}

// The calling thread's callbacks that belong to this file. Usually one. If a LibTorch guard has
// restored earlier callbacks, it may be none, or one that was removed before.
std::vector<at::CallbackHandle> own_callbacks() {
  std::vector<at::CallbackHandle> own;
  for (const auto& entry : at::get_record_function_tls_().sorted_tls_callbacks_) {
    if (entry.callback_.start() == &on_begin) own.push_back(entry.handle_);
  }
  return own;
}

void listen() {
  if (!own_callbacks().empty()) return;
  listening.thread = static_cast<std::uint64_t>(::gettid());
  at::addThreadLocalCallback(at::RecordFunctionCallback(&on_begin, &on_end)
                                 .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

// The calling thread's callbacks for ranges but those of this file; nothing if there are none.
std::optional<at::StepCallbacks> callbacks_of_others() {
  auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
  if (!callbacks) return std::nullopt;
  auto& all = callbacks->callbacks_;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const auto& each) { return each.start_ == &on_begin; }),
            all.end());
  if (all.empty()) return std::nullopt;
  return std::move(*callbacks);
}

void stop_listening() {
  for (const at::CallbackHandle handle : own_callbacks())
    at::removeCallback(handle);
}

// A range that may end on another thread than it began on, like those of torch.distributed.rpc.
// Profilers look for their state on the thread where the range ends. So this sets the state of the
// thread where it began, or none if that profiler has stopped, because what it would write into no
// longer exists.
class Range {
 public:
  // Returns null if no profiler would see the range.
  static std::shared_ptr<void> begin(const std::string& name) {
    auto callbacks = callbacks_of_others();
    if (!callbacks) return nullptr;
    auto range = std::make_shared<Range>(*std::move(callbacks));
    if (ThreadLocalDebugInfo::get(kind()) != nullptr) {
      range->state_ = ThreadLocalDebugInfo::_peek(kind());  // throws if another state lies above it
    }
    range->function_._setAsync();
    range->function_.before(name);
    return range;
  }

  explicit Range(at::StepCallbacks&& callbacks) : function_(std::move(callbacks)) {}
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {
    const auto here = ThreadLocalDebugInfo::current();
    ThreadLocalDebugInfo::_forceCurrentDebugInfo(nullptr);
    {
      const c10::DebugInfoGuard there(kind(), state_.lock());
      function_.end();
    }
    ThreadLocalDebugInfo::_forceCurrentDebugInfo(here);
  }

 private:
  static c10::DebugInfoKind kind() { return c10::DebugInfoKind::PROFILER_STATE; }

  at::RecordFunction function_;
  std::weak_ptr<c10::DebugInfoBase> state_;
};

class TorchOperatorSource final : public OperatorSource {
 public:
  OperatorSink* exchange_sink(OperatorSink* sink) const noexcept override {
    OperatorSink* const before = listening.sink;
    try {
      if (sink != nullptr) {
        listen();
      } else if (before != nullptr) {
        stop_listening();
      }
      listening.sink = sink;
    } catch (...) {  // out of memory
      listening.sink = nullptr;
    }
    return before;
  }

  bool is_watched() const noexcept override { return callbacks_of_others().has_value(); }

  std::shared_ptr<void> begin_range(const std::string& name) const override {
    try {
      return Range::begin(name);
    } catch (...) {
      return nullptr;
    }
  }
};

constexpr TorchOperatorSource kTorchOperatorSource;

}  // namespace
}  // namespace batchrpc::detail

const batchrpc::detail::OperatorSource* batchrpc::torch_operators() noexcept {
  return &detail::kTorchOperatorSource;
}
