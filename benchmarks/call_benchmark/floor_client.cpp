#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "call_benchmark/epoll.hpp"
#include "call_benchmark/floor.hpp"
#include "call_benchmark/floor_hello.hpp"

namespace call_benchmark {

namespace {

class FloorClient final : public Client {
 public:
  FloorClient(std::vector<std::unique_ptr<Channel>> channels, int in_flight, MessageSizes sizes,
              bool busy)
      : in_flight_(static_cast<std::size_t>(in_flight)),
        sizes_(sizes),
        busy_(busy),
        requests_(in_flight_ * sizes.request),
        room_(in_flight_ * sizes.reply) {
    const FloorHello hello{
        .request_bytes = sizes.request, .reply_bytes = sizes.reply, .busy = busy ? 1U : 0U};
    for (std::unique_ptr<Channel>& channel : channels) {
      channel->send(std::as_bytes(std::span(&hello, 1)));
      epoll_.add(channel->descriptor(), connections_.size());
      connections_.push_back({.channel = std::move(channel), .partial = 0, .sent = {}});
    }
  }

  Outcome run(const Stretch& stretch, bool timed) override {
    Outcome outcome;
    std::size_t under_way = 0;
    for (Connection& connection : connections_) {
      send(connection, in_flight_, timed ? Clock::now() : Clock::time_point{}, timed);
      under_way += in_flight_;
    }
    while (under_way > 0) {
      for (const epoll_event& event : epoll_.wait(!busy_)) {
        Connection& connection = connections_[event.data.u64];
        const std::size_t bytes = connection.partial + connection.channel->receive(room_);
        const std::size_t count = bytes / sizes_.reply;
        connection.partial = bytes % sizes_.reply;
        if (count == 0) continue;
        Clock::time_point now{};
        if (timed) {
          now = Clock::now();
          note(connection, count, now, outcome);
        }
        if (stretch.over()) {
          under_way -= count;
          outcome.late += count;
        } else {
          outcome.calls += count;
          send(connection, count, now, timed);
        }
      }
    }
    return outcome;
  }

 private:
  struct Connection {
    std::unique_ptr<Channel> channel;
    std::size_t partial;  // bytes of an incomplete reply
    std::deque<Clock::time_point>
        sent;  // send times of the messages in flight; replies come in order
  };

  void send(Connection& connection, std::size_t count, Clock::time_point now, bool timed) {
    if (timed) connection.sent.insert(connection.sent.end(), count, now);
    connection.channel->send(std::span<const std::byte>(requests_).first(count * sizes_.request));
  }

  static void note(Connection& connection, std::size_t count, Clock::time_point now,
                   Outcome& outcome) {
    for (std::size_t i = 0; i < count; ++i) {
      outcome.rtt_us.push_back(
          std::chrono::duration<double, std::micro>(now - connection.sent[i]).count());
    }
    connection.sent.erase(connection.sent.begin(),
                          connection.sent.begin() + static_cast<std::ptrdiff_t>(count));
  }

  const std::size_t in_flight_;
  const MessageSizes sizes_;
  const bool busy_;
  Epoll epoll_;
  std::vector<Connection> connections_;
  const std::vector<std::byte> requests_;
  std::vector<std::byte> room_;
};

}  // namespace

std::unique_ptr<Client> make_floor_client(std::vector<std::unique_ptr<Channel>> channels,
                                          int in_flight, MessageSizes sizes, bool busy) {
  return std::make_unique<FloorClient>(std::move(channels), in_flight, sizes, busy);
}

}  // namespace call_benchmark
