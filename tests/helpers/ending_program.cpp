#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"

// A program with two nodes that ends in an awkward way, for tests that look at how that goes.
//
//   ending_program WAY

// A program that ends in the middle of everything may leave memory behind.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();  // NOLINT
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
// Otherwise the thread sanitizer ends a forked child that starts threads, as one of the ways does.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();  // NOLINT
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace ending {

int add(int a, int b) { return a + b; }

class Counter {
 public:
  explicit Counter(int start) : value_(start) {}
  int add(int n) { return value_ += n; }

 private:
  int value_;
};

}  // namespace ending

namespace {

using namespace batchrpc;
using namespace std::chrono_literals;

// Of static life time, on both sides of the nodes: destroyed at the program's end in the reverse
// order.
std::vector<Future<int>> futures_before;
std::optional<RRef<ending::Counter>> handle_before;
std::optional<Batcher<int(int)>> batcher_before;
std::optional<Node> first;
std::optional<Node> second;
std::optional<Batcher<int(int)>> batcher_after;
std::optional<RRef<ending::Counter>> handle_after;
std::vector<Future<int>> futures_after;
std::vector<Promise<int>> never;

std::vector<int> double_all(std::vector<int> rows) {
  for (int& row : rows)
    row *= 2;
  return rows;
}

NodeOptions options_of(const std::string& name) {
  NodeOptions options;
  options.name = name;
  options.num_worker_threads = 2;
  options.shutdown_timeout = 200ms;
  return options;
}

void start_nodes() {
  first.emplace(options_of("first"));
  NodeOptions joining = options_of("second");
  joining.rank = -1;
  joining.join = first->address();
  second.emplace(joining);
  second->expose<&ending::add>();
  second->expose("never",
                 [] {
                   never.emplace_back();
                   return never.back().get_future();
                 },
                 {.short_handler = true});
  second->expose("sleep", [] { std::this_thread::sleep_for(1h); });
  second->expose_class<ending::Counter(int)>();
  second->expose<&ending::Counter::add>();
  handle_before = first->create<ending::Counter>("second", 1);
  handle_after = *handle_before;
  batcher_before.emplace(BatchOptions{.max_wait = 1h}, double_all);
  batcher_after.emplace(BatchOptions{.max_wait = 1h}, double_all);
  second->expose("batch_before", *batcher_before);
  second->expose("batch_after", *batcher_after);
}

// Calls that are not answered, with callbacks that use what is static.
void call_in_vain() {
  for (auto* futures : {&futures_before, &futures_after}) {
    for (int i = 0; i < 50; ++i) {
      futures->push_back(first->call<int()>("second", "never"));
      futures->push_back(first->call<int(int)>("second", "batch_before", i));
      futures->push_back(first->call<int(int)>("second", "batch_after", i));
      futures->push_back(first->call<&ending::add>("second", i, i).then([](int sum) {
        return first ? first->call<&ending::add>("second", sum, 1)
                     : make_failed_future<int>(std::make_exception_ptr(ShutDown("over")));
      }));
      futures->push_back(handle_after->call<&ending::Counter::add>(1));
    }
  }
  if (first->call<&ending::add>("second", 1, 2).get() != 3) throw std::runtime_error("a wrong sum");
}

bool refuses_after_fork(const Result<int>& result) {
  return !result && result.code() == ErrorCode::shut_down &&
         describe(result.error()).find("fork") != std::string::npos;
}

template <class F>
bool refuses(const F& f) {
  try {
    f();
  } catch (const ShutDown& error) {
    return std::string_view(error.what()).find("fork") != std::string_view::npos;
  }
  return false;
}

// The child's nodes say that they do not work there, the parent's go on.
int fork_and_call() {
  const auto pending = first->call<int()>("second", "never");
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // should it hang
    auto sum = first->call<&ending::add>("second", 1, 2);
    const bool refused = sum.ready() && refuses_after_fork(sum.result());
    const bool peer = refuses([] { first->wait_for_peer("nobody", 1h).get(); });
    const bool wait = refuses([&] { (void)pending.get(); });
    auto handle = handle_before->call<&ending::Counter::add>(1);
    const bool handle_refused = handle.ready() && refuses_after_fork(handle.result());
    const bool all_refused = refused && handle_refused && peer && wait;
    if (!all_refused) std::cerr << "the child's calls and waits were not refused\n";
    second->shutdown(1s);
    std::exit(all_refused ? 0 : 1);  // destroys its copies of the nodes
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well) std::cerr << "the child ended with status " << status << '\n';
  const bool works = first->call<&ending::add>("second", 1, 2).get() == 3 &&
                     handle_before->call<&ending::Counter::add>(1).get() > 1;
  if (!works) std::cerr << "the parent's calls failed\n";
  return well && works ? 0 : 1;
}

// By a child: nodes of its own call each other. Whether they can.
bool nodes_work() {
  Node root(options_of("root"));
  NodeOptions joining = options_of("joining");
  joining.rank = -1;
  joining.join = root.address();
  const Node other(joining);
  other.expose<&ending::add>();
  return root.call<&ending::add>("joining", 1, 2).get() == 3;
}

// A child drops its copies of nodes and handles, of which threads of the parent make use.
int fork_while_in_use() {
  std::atomic<bool> done{false};
  std::thread busy([&done] {
    while (!done) {
      const auto owned = second->own(std::make_shared<ending::Counter>(1));
      first->peer("second").with({.retry = {.attempts = 2}}).call<&ending::add>(1, 2).get();
    }
  });
  std::thread busier([&done] {  // has the locks of the session, and of what cancels calls
    while (!done) {
      std::vector<batchrpc::Future<int>> calls;
      for (int i = 0; i < 100; ++i)
        calls.push_back(first->call<&ending::add>("second", 1, 2));
      for (auto& call : calls) {
        (void)call.cancel();
        call.wait();
      }
    }
  });
  int failed = 0;
  for (int round = 0; round < 50; ++round) {
    std::optional owned(second->own(std::make_shared<ending::Counter>(1)));
    std::optional dropped(
        first->peer("second").with({.cancel_when_dropped = true}).call<int()>("never"));
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // should it hang
      owned.reset();
      dropped.reset();
      handle_before.reset();
      first.reset();
      second.reset();
      std::_Exit(round % 5 != 0 || nodes_work() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) ++failed;
  }
  done = true;
  busy.join();
  busier.join();
  (void)first->call<&ending::add>("second", 1, 2).get();  // what was called before has come
  return failed;
}

int fork_and_start_nodes() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // should it hang
    std::_Exit(nodes_work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

[[noreturn]] void wait_for_exit() {
  while (true)
    ::pause();
}

int end(const std::string& way) {
  if (way == "return") return 3;
  if (way == "exit") std::exit(3);
  if (way == "exit_on_another_thread") {
    std::thread([] { std::exit(3); }).detach();
    wait_for_exit();
  }
  if (way == "exit_in_a_handler") {
    second->expose("exit", [] { std::exit(3); });
    first->peer("second").notify<void()>("exit");
    wait_for_exit();
  }
  if (way == "exit_in_a_callback") {
    first->call<&ending::add>("second", 1, 2).then([](int /*sum*/) { std::exit(3); });
    wait_for_exit();
  }
  if (way == "exit_while_a_handler_sleeps") {
    first->peer("second").notify<void()>("sleep");
    std::exit(3);
  }
  if (way == "fork") return fork_and_call();
  if (way == "fork_while_in_use") return fork_while_in_use();
  if (way == "fork_and_start_nodes") return fork_and_start_nodes();
  std::cerr << "usage: ending_program WAY\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    start_nodes();
    call_in_vain();
    return end(argc == 2 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::cerr << "failed: " << error.what() << '\n';
    return 1;
  }
}
