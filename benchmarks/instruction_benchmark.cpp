// A fixed workload for scripts/instructions.sh, which counts the instructions of a call. Two nodes
// of one process call each other over a Unix socket. One thread drives both, so that each run
// executes the same instructions. Client and server are counted together; the kernel is not
// counted.
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <batchrpc/batchrpc.hpp>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rpc = batchrpc;

namespace {

constexpr const char* kServer = "server";
constexpr int kWarmUp = 2000;
/// Calls in flight. A turn of reading takes that many whole. With more it would end by the clock,
/// and too early: valgrind makes a program some 50 times slower.
constexpr int kWindow = 16;

}  // namespace

double scale(double factor, std::int64_t value, std::int32_t offset) {
  return factor * static_cast<double>(value) + offset;
}

double scale_on_worker(double factor, std::int64_t value, std::int32_t offset) {
  return scale(factor, value, offset);
}

std::vector<std::byte> echo(std::vector<std::byte> payload) { return payload; }

class Counter {
 public:
  std::int64_t add(std::int64_t number) { return sum_ += number; }

 private:
  std::int64_t sum_ = 0;
};

namespace {

/// Two nodes that the calling thread drives.
class Pair {
 public:
  Pair() {
    const std::string place =
        "unix-abstract:instruction_benchmark-" +
        std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
    auto server = start(0, kServer, place);
    auto client = start(1, "client", place);
    server_.emplace(get(std::move(server)));
    client_.emplace(get(std::move(client)));
    const rpc::ExposeOptions brief{.short_handler = true};
    server_->expose<&scale>(brief);
    server_->expose<&scale_on_worker>();
    server_->expose<&echo>(brief);
    server_->expose_class<Counter()>();
    server_->expose<&Counter::add>();
    server_->expose("square", square_);
  }
  [[nodiscard]] const rpc::Node& client() const { return *client_; }

  /// Makes calls, `window` of them in flight, until `count` are answered. `call()` returns a
  /// future.
  template <class Call>
  void make(int count, int window, const Call& call) {
    int left = count;
    int answered = 0;
    const std::function<void()> next = [&] {
      if (left-- <= 0) return;
      call().then([&](const auto&) {
        ++answered;
        next();
      });
    };
    for (int i = 0; i < window; ++i)
      next();
    while (answered < count)
      io_.run_one();
  }

  template <class T>
  T get(rpc::Future<T> future) {
    while (!future.ready())
      io_.run_one();
    return std::move(future).get();
  }

 private:
  rpc::Future<rpc::Node> start(int rank, const std::string& name, const std::string& place) {
    rpc::NodeOptions options;
    options.name = name;
    options.rank = rank;
    options.world_size = 2;
    options.join = place;
    options.transports = {rpc::unix_transport()};
    options.io_context = &io_;
    options.simulation.seed = static_cast<std::uint64_t>(rank) + 1;
    return rpc::Node::start(std::move(options));
  }

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  rpc::Batcher<std::int64_t(std::int64_t)> square_{{.max_size = 64, .short_handler = true},
                                                   [](std::vector<std::int64_t> numbers) {
                                                     for (std::int64_t& number : numbers)
                                                       number *= number;
                                                     return numbers;
                                                   }};
  std::optional<rpc::Node> server_;
  std::optional<rpc::Node> client_;
};

using Work = std::function<void(int count)>;

std::map<std::string, Work> cases(Pair& pair) {
  const rpc::Node& client = pair.client();
  const auto three = [&client] { return client.call<&scale>(kServer, 2.0, 3, 4); };
  const auto counter = std::make_shared<rpc::RRef<Counter>>(client.create<Counter>(kServer));
  return {
      {"one", [=, &pair](int count) { pair.make(count, 1, three); }},
      {"window", [=, &pair](int count) { pair.make(count, kWindow, three); }},
      {"worker",
       [&](int count) {
         pair.make(count, kWindow,
                   [&client] { return client.call<&scale_on_worker>(kServer, 2.0, 3, 4); });
       }},
      {"bytes",
       [&](int count) {
         const std::vector<std::byte> payload(1024);
         pair.make(count, kWindow, [&] { return client.call<&echo>(kServer, payload); });
       }},
      {"object",
       [=, &pair](int count) {
         pair.make(count, kWindow, [&] { return counter->call<&Counter::add>(1); });
       }},
      {"batch",
       [&](int count) {
         pair.make(count, kWindow, [&client] {
           return client.call<std::int64_t(std::int64_t)>(kServer, "square", 3);
         });
       }},
  };
}

}  // namespace

/// The counted function.
extern "C" __attribute__((noinline)) void measured(const Work& work, int count) {
  work(count);
  asm volatile("" ::: "memory");  // prevents a tail call, which would hide the end
}

int main(int argc, char** argv) {
  int count = 0;
  if (argc == 3) std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), count);
  if (count < 1) {
    std::cerr << "usage: instruction_benchmark one|window|worker|bytes|object|batch <calls>\n";
    return 2;
  }
  try {
    Pair pair;
    const std::map<std::string, Work> works = cases(pair);
    const auto work = works.find(argv[1]);
    if (work == works.end()) throw std::invalid_argument(std::string("no such case: ") + argv[1]);
    work->second(kWarmUp);
    measured(work->second, count);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "instruction_benchmark: " << error.what() << std::endl;
    return 1;
  }
}
