// The time that bare sockets need for a parameter server's traffic. N processes receive the model;
// in each iteration they send the server their gradients, which it adds up, and receive the model
// again. It uses blocking reads and writes, reused buffers and no library. It is the floor of
// `parameter_server --synthetic`. With `--transport pull` sockets carry only addresses, and each
// side copies from the other's memory.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "common/command_line.hpp"
#include "common/statistics.hpp"

namespace parameter_server_floor {
namespace {

using Clock = std::chrono::steady_clock;
using batchrpc_examples::median;

struct Options {
  int trainers = 5;
  int iterations = 20;
  int threads = 1;  // of the server; each serves some of the trainers
  std::size_t elements = 23'569'502;
  std::string transport = "tcp";
  bool sum = true;
  std::string json;
};

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

void check(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

/// A socket, or one end of a pipe.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) { check(value >= 0, "a socket"); }
  ~Descriptor() { ::close(value_); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int get() const { return value_; }

  void write(const void* data, std::size_t size) const {
    const auto* from = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(value_, from, size);
      check(written > 0, "write");
      from += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  void read(void* data, std::size_t size) const {
    auto* to = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = ::read(value_, to, size);
      check(got >= 0, "read");
      if (got == 0) throw std::runtime_error("the peer closed the connection");
      to += got;
      size -= static_cast<std::size_t>(got);
    }
  }

 private:
  int value_;
};

/// Transfers blocks to and from one other process.
class Channel {
 public:
  Channel(Descriptor socket, bool pull) : socket_(std::move(socket)), pull_(pull) {
    if (!pull_) return;
    const pid_t own = ::getpid();
    socket_.write(&own, sizeof own);
    socket_.read(&peer_, sizeof peer_);
  }

  /// The data must not change before wait_until_taken().
  void send(const void* data, std::size_t size) const {
    if (pull_) {
      socket_.write(&data, sizeof data);
    } else {
      socket_.write(data, size);
    }
  }
  void wait_until_taken() const {
    char taken = 0;
    if (pull_) socket_.read(&taken, 1);
  }
  void receive(void* data, std::size_t size) const {
    if (!pull_) {
      socket_.read(data, size);
      return;
    }
    char* from = nullptr;
    socket_.read(&from, sizeof from);
    auto* to = static_cast<char*>(data);
    while (size > 0) {
      const iovec here{.iov_base = to, .iov_len = std::min(size, kPiece)};
      const iovec there{.iov_base = from, .iov_len = here.iov_len};
      const ssize_t got = ::process_vm_readv(peer_, &here, 1, &there, 1, 0);
      check(got > 0, "process_vm_readv");
      to += got;
      from += got;
      size -= static_cast<std::size_t>(got);
    }
    socket_.write("", 1);
  }

 private:
  static constexpr std::size_t kPiece = 256 * 1024;
  Descriptor socket_;
  bool pull_;
  pid_t peer_ = 0;
};

/// The server's listening address; its children have a copy of it.
class Listener {
 public:
  explicit Listener(bool tcp)
      : tcp_(tcp), socket_(::socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0)) {
    if (tcp_) {
      ip_.sin_family = AF_INET;
      ip_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size_ = sizeof ip_;
    } else {  // in the abstract namespace, in which the kernel chooses a name
      local_.sun_family = AF_UNIX;
      size_ = sizeof(sa_family_t);
    }
    check(::bind(socket_.get(), address(), size_) == 0, "bind");
    size_ = tcp_ ? sizeof ip_ : sizeof local_;
    check(::getsockname(socket_.get(), address(), &size_) == 0, "getsockname");
    check(::listen(socket_.get(), 128) == 0, "listen");
    const timeval longest{.tv_sec = 60, .tv_usec = 0};  // for a child that has died
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  }

  [[nodiscard]] Descriptor accept() { return prepared(::accept(socket_.get(), nullptr, nullptr)); }
  [[nodiscard]] Descriptor connect() {
    const int connected = ::socket(tcp_ ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    check(::connect(connected, address(), size_) == 0, "connect");
    return prepared(connected);
  }

 private:
  [[nodiscard]] sockaddr* address() {
    return tcp_ ? reinterpret_cast<sockaddr*>(&ip_) : reinterpret_cast<sockaddr*>(&local_);
  }
  [[nodiscard]] Descriptor prepared(int connection) const {
    const int on = 1;
    constexpr char kReno[] = "reno";  // if the system allows it, like batchrpc on one machine
    if (tcp_) {
      ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ::setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof kReno - 1);
    }
    return Descriptor(connection);
  }

  bool tcp_;
  Descriptor socket_;
  sockaddr_in ip_{};
  sockaddr_un local_{};
  socklen_t size_ = 0;
};

/// Reports through `report` when it received the model of each iteration.
void run_trainer(const Options& options, const Channel& server, const Descriptor& report) {
  const std::vector<float> gradient(options.elements, 1);
  std::vector<float> model(options.elements);
  const std::size_t bytes = options.elements * sizeof(float);
  std::vector<double> ends;
  server.receive(model.data(), bytes);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    server.send(gradient.data(), bytes);
    server.wait_until_taken();
    server.receive(model.data(), bytes);
    ends.push_back(now());
  }
  report.write(ends.data(), ends.size() * sizeof(double));
}

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options),
        model_(options.elements, 2),
        sum_(options.elements),
        everybody_(options.threads) {}

  void add_trainer(Channel connection) { trainers_.push_back(std::move(connection)); }

  void run() {
    std::vector<std::thread> threads;
    for (int number = 0; number < options_.threads; ++number)
      threads.emplace_back([this, number] { serve(number); });
    for (auto& thread : threads)
      thread.join();
  }

 private:
  // Serves the trainers of one thread in turn, so that each has the machine to itself while it
  // sends.
  void serve(int number) {
    std::vector<float> gradient(options_.elements);
    const std::size_t bytes = options_.elements * sizeof(float);
    const auto first = static_cast<std::size_t>(number);
    const auto step = static_cast<std::size_t>(options_.threads);
    send_model(first, step);
    for (int iteration = 0; iteration < options_.iterations; ++iteration) {
      for (std::size_t i = first; i < trainers_.size(); i += step) {
        trainers_[i].receive(gradient.data(), bytes);
        if (options_.sum) add(gradient);
      }
      everybody_.arrive_and_wait();
      if (number == 0) added_ = 0;
      send_model(first, step);
      everybody_.arrive_and_wait();
    }
  }
  void send_model(std::size_t first, std::size_t step) const {
    for (std::size_t i = first; i < trainers_.size(); i += step)
      trainers_[i].send(model_.data(), model_.size() * sizeof(float));
    for (std::size_t i = first; i < trainers_.size(); i += step)
      trainers_[i].wait_until_taken();
  }
  void add(const std::vector<float>& gradient) {
    const std::lock_guard lock(mutex_);
    if (added_++ == 0) {
      std::memcpy(sum_.data(), gradient.data(), gradient.size() * sizeof(float));
      return;
    }
    std::transform(sum_.begin(), sum_.end(), gradient.begin(), sum_.begin(), std::plus<>());
  }

  const Options& options_;
  const std::vector<float> model_;
  std::mutex mutex_;
  std::vector<float> sum_;
  int added_ = 0;
  std::vector<Channel> trainers_;
  std::barrier<> everybody_;
};

/// Seconds from the moment when all are ready until the last trainer has the first model, and from
/// each iteration to the next.
std::vector<double> run_all(const Options& options) {
  const bool pull = options.transport == "pull";
  Listener listener(options.transport == "tcp");
  std::vector<Descriptor> reports;
  std::vector<pid_t> children;
  for (int i = 0; i < options.trainers; ++i) {
    int ends[2];
    check(::pipe(ends) == 0, "pipe");
    Descriptor read_end(ends[0]);
    const Descriptor write_end(ends[1]);
    const pid_t child = ::fork();
    check(child >= 0, "fork");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      run_trainer(options, Channel(listener.connect(), pull), write_end);
      ::_exit(0);
    }
    children.push_back(child);
    reports.push_back(std::move(read_end));
  }
  Server server(options);
  for (int i = 0; i < options.trainers; ++i)
    server.add_trainer(Channel(listener.accept(), pull));
  const double begin = now();
  server.run();
  std::vector<double> last(static_cast<std::size_t>(options.iterations));
  for (const Descriptor& report : reports) {
    std::vector<double> ends(last.size());
    report.read(ends.data(), ends.size() * sizeof(double));
    for (std::size_t i = 0; i < last.size(); ++i)
      last[i] = std::max(last[i], ends[i]);
  }
  for (const pid_t child : children)
    ::waitpid(child, nullptr, 0);
  std::vector<double> seconds{last[0] - begin};
  for (std::size_t i = 1; i < last.size(); ++i)
    seconds.push_back(last[i] - last[i - 1]);
  return seconds;
}

int run(int argc, const char* const* argv) {
  Options options;
  const auto parser = batchrpc_examples::make_parser(
      "Does the work of parameter_server --synthetic with bare sockets.");
  CLI::App& app = *parser;
  app.add_option("--trainers", options.trainers, "trainer processes")->check(CLI::Range(1, 64));
  app.add_option("--iterations", options.iterations)->check(CLI::Range(1, 100'000));
  app.add_option("--threads", options.threads, "threads of the server")->check(CLI::Range(1, 64));
  app.add_option("--elements", options.elements, "floats in a gradient and in the model")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
  app.add_option("--transport", options.transport)->check(CLI::IsMember({"tcp", "unix", "pull"}));
  app.add_flag("!--no-sum", options.sum, "receive gradients but do not add them");
  app.add_option("--json", options.json, "write the report to this file");
  if (!batchrpc_examples::parse_command_line(app, argc, argv, [] {})) return 0;
  const std::vector<double> seconds = run_all(options);
  const double middle = median(seconds);
  const double bytes = 2.0 * options.trainers * static_cast<double>(options.elements) * 4;
  std::printf("%s, %d trainers, %d threads, %s: %.4f s an iteration, %.2f GB/s\n",
              options.transport.c_str(), options.trainers, options.threads,
              options.sum ? "adding up" : "not adding up", middle, bytes / middle / 1e9);
  if (!options.json.empty()) {
    const nlohmann::json report = {
        {"system", "bare sockets"},
        {"threads", options.threads},
        {"work_seconds", std::accumulate(seconds.begin(), seconds.end(), 0.0)},
        {"iteration_seconds", seconds},
        {"iteration_median_seconds", middle}};
    batchrpc_examples::write_file(options.json, report.dump(2) + "\n");
  }
  return 0;
}

}  // namespace
}  // namespace parameter_server_floor

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("parameter_server_floor", &parameter_server_floor::run,
                                        argc, argv);
}
