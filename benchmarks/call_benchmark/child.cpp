#include "call_benchmark/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

#include "call_benchmark/floor.hpp"
#include "call_benchmark/memory.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/overload.hpp"
#include "call_benchmark/strangers.hpp"

namespace call_benchmark {

Child::Child(Role role, Transport transport, const std::string& address, int count) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  file_ = ends[0];
  ::fcntl(ends[1], F_SETFD, 0);  // the child keeps this end
  try {
    process_.emplace(batchrpc_examples::ProcessOptions{
        .arguments = child_arguments(role, transport, ends[1], address, count)});
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
}

Child::~Child() {
  process_.reset();
  ::close(file_);
}

std::string Child::read_line(Interrupt& interrupt) {
  constexpr auto kPatience = std::chrono::seconds(30);
  constexpr int kLookMs = 100;
  const Clock::time_point give_up = Clock::now() + kPatience;
  while (read_.find('\n') == std::string::npos) {
    interrupt.check();
    if (Clock::now() > give_up) throw std::runtime_error("a child process does not answer");
    pollfd readable{.fd = file_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, kLookMs) <= 0) continue;
    char buffer[256];
    const ssize_t count = ::read(file_, buffer, sizeof buffer);
    if (count == 0) {
      throw std::runtime_error("a child process " + process_->wait().describe());
    }
    if (count > 0) read_.append(buffer, static_cast<std::size_t>(count));
  }
  const std::size_t end = read_.find('\n');
  std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

namespace {

void write_line(int file, const std::string& text) {
  const std::string line = text + "\n";
  if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error(errno, std::generic_category(), "writing to the parent process");
  }
}

[[noreturn]] void wait_to_be_ended() {
  while (true)
    ::pause();
}

}  // namespace

int run_child(const Options& options) {
  // Ctrl-C goes to the whole foreground; the parent then ends us.
  std::signal(SIGINT, SIG_IGN);
  const Transport transport = options.transports.front();
  const auto say = [&](const std::string& line) { write_line(options.line_file, line); };
  switch (options.role) {
    case Role::floor_server: {
      const auto acceptor = listen_on_socket(transport);
      say(acceptor->address());
      serve_floor(*acceptor);
      return 0;
    }
    case Role::node_server: {
      const batchrpc::Node node = start_server(transport);
      say(join_address(node, transport));
      wait_to_be_ended();
    }
    case Role::pestered_server: {
      const batchrpc::Node node = start_server(transport, nullptr, batchrpc::LogLevel::error);
      say(join_address(node, transport));
      wait_to_be_ended();
    }
    case Role::overloaded_server: {
      const batchrpc::Node node = start_overloaded_server(options.count != 0);
      say(join_address(node, transport));
      wait_to_be_ended();
    }
    case Role::strangers:
      say("coming");
      run_strangers(static_cast<Strangers>(options.count), options.address);
    case Role::many_nodes:
      run_many_nodes(transport, options.count, say);
      wait_to_be_ended();
    case Role::joining_nodes:
      run_joining_nodes(transport, options.address, options.count, say);
      wait_to_be_ended();
    case Role::calling_node:
      run_calling_node(transport, options.address, options.count, say);
      return 0;
    case Role::called_node:
      run_called_node(transport, options.count, say);
      wait_to_be_ended();
    case Role::pending_calls:
      run_pending_calls(transport, options.address, options.count, say);
      return 0;
    case Role::measure:
      break;
  }
  return 2;
}

}  // namespace call_benchmark
