#include "batch/calling_thread.hpp"

#include <deque>
#include <utility>

#include "base/per_thread.hpp"

namespace batchrpc::detail {
namespace {

struct Running {
  std::deque<Task> next;
  bool active = false;
};

}  // namespace

void CallingThread::post(Task task) {
  auto& here = per_thread<Running>();
  if (here.active) {
    here.next.push_back(std::move(task));
    return;
  }
  here.active = true;
  task();
  while (!here.next.empty()) {
    Task next = std::move(here.next.front());
    here.next.pop_front();
    next();
  }
  here.active = false;
}

}  // namespace batchrpc::detail
