#include "soak/callee.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "soak/pattern.hpp"

namespace soak {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLingering = 200ms;

RanWindow* map_window(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ::ftruncate(file, sizeof(RanWindow)) == 0) {
    memory = ::mmap(nullptr, sizeof(RanWindow), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int error = errno;
  if (file >= 0) ::close(file);
  if (memory == MAP_FAILED) throw std::system_error(error, std::generic_category(), path);
  return static_cast<RanWindow*>(memory);
}

}  // namespace

Callee::Callee(const batchrpc::Node& node, const Options& options, Report& report)
    : node_(node), is_agent_(options.role == Role::agent), report_(report) {
  if (is_agent_) {
    observers_.resize(kObservers);
  } else {
    agent_ = map_window(options.folder + "/" + node.name());
  }
  expose_objects();
  if (is_agent_) expose_batcher();
  expose_calls();
}

Callee::~Callee() {
  if (agent_ != nullptr) ::munmap(agent_, sizeof *agent_);
}

void Callee::ran(const CallId& id, const char* function) {
  const std::lock_guard lock(mutex_);
  bool first = false;
  if (!is_agent_) {
    first = id.caller == kObservers && agent_->mark(id.number);
  } else if (id.caller < kObservers) {
    auto& lives = observers_[id.caller];
    auto at = std::find_if(lives.begin(), lives.end(),
                           [&](const LifeWindow& window) { return window.life == id.life; });
    if (at == lives.end()) {
      at = std::min_element(lives.begin(), lives.end(),
                            [](const auto& a, const auto& b) { return a.life < b.life; });
      if (at->life > id.life) return;  // the record to check against has been forgotten
      *at = LifeWindow{.life = id.life};
    }
    first = at->ran.mark(id.number);
  }
  if (!first) {
    report_.failed("a call ran twice: " + std::string(function) + " number " +
                   std::to_string(id.number) + " of caller " + std::to_string(id.caller) +
                   " in its life " + std::to_string(id.life));
  }
}

void Callee::expose_calls() {
  node_.expose("echo",
               [this](const CallId& id, const EchoRequest& request, const batchrpc::Bytes& bytes) {
                 ran(id, "echo");
                 if (!is_part_of_pattern(bytes, request.at, request.size)) {
                   report_.failed("an echo's argument is wrong");
                 }
                 return part_of_pattern(request.reply_at, request.reply_size);
               });
  node_.expose("tell", [this](const CallId& id) { ran(id, "tell"); }, {.short_handler = true});
  node_.expose("square", [](double x) { return x * x; });
  node_.expose("linger", [this](const CallId& id) {
    ran(id, "linger");
    batchrpc::Promise<std::uint64_t> promise;
    auto future = promise.get_future();
    const std::lock_guard lock(mutex_);
    lingering_.push_back({Clock::now() + kLingering, std::move(promise), id.number});
    return future;
  });
}

void Callee::expose_batcher() {
  const batchrpc::BatchOptions options{.max_size = 32, .max_wait = 2ms};
  node_.expose("act", batchrpc::Batcher<Row(CallId, Row)>(
                          options, [this](std::vector<CallId> ids, std::vector<Row> rows) {
                            for (const CallId& id : ids)
                              ran(id, "act");
                            for (Row& row : rows) {
                              for (float& x : row)
                                x = 2 * x + 1;
                            }
                            return rows;
                          }));
}

void Callee::expose_objects() {
  node_.expose_class<Tally(int)>();
  node_.expose<&Tally::add>();
  // Passes the handle to a third node, which calls its owner.
  if (is_agent_) {
    node_.expose("pass on", [this](const batchrpc::RRef<Tally>& tally, const std::string& to) {
      return node_.call<int(batchrpc::RRef<Tally>)>(to, "use", tally);
    });
  } else {
    node_.expose("use",
                 [](const batchrpc::RRef<Tally>& tally) { return tally.call<&Tally::add>(1); });
  }
}

void Callee::tick() {
  while (true) {
    std::deque<Lingering> due;
    {
      const std::lock_guard lock(mutex_);
      if (lingering_.empty() || lingering_.front().until > Clock::now()) return;
      due.push_back(std::move(lingering_.front()));
      lingering_.pop_front();
    }
    due.front().promise.set_value(due.front().number);
  }
}

}  // namespace soak
