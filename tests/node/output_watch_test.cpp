#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "node/output_fixture.hpp"

// The watches of OutputQueue::append: they are notified when their frame leaves.
namespace batchrpc {
namespace output_watch_test {

using test::ping;
using Fixture = test::OutputFixture;

class Watch final : public FrameWatch {
 public:
  explicit Watch(std::function<void()> task) : task_(std::move(task)) {}
  void taken() noexcept override { task_(); }

 private:
  std::function<void()> task_;
};

// Appends a frame that is watched.
OutputQueue::Place append(OutputQueue& queue, std::uint64_t id, std::function<void()> taken) {
  const auto frame = ping(id);
  return queue.append(frame, id, false, {}, std::make_shared<Watch>(std::move(taken)));
}

TEST_CASE("who watches a frame is told when it is given to the stream, each once and in order") {
  Fixture f;
  std::vector<int> told;
  append(f.queue, 1, [&] { told.push_back(1); });
  f.queue.flush();
  CHECK(told.empty());  // the handshake has not ended
  f.queue.open();
  append(f.queue, 2, [&] { told.push_back(2); });
  f.queue.flush();
  CHECK(told == std::vector{1, 2});
  append(f.queue, 3, [&] { told.push_back(3); });
  CHECK(told == std::vector{1, 2});
  f.queue.flush();
  f.queue.flush();
  CHECK(told == std::vector{1, 2, 3});
}

TEST_CASE("who watches is told before the stream has the frame, and without the lock") {
  Fixture f;
  f.queue.open();
  std::size_t written = 1;
  bool unlocked = false;
  append(f.queue, 1, [&] {
    written = f.sink.bytes.size();
    f.queue.append(ping(2), 2, false, {});  // it would wait for ever if the lock were held
    unlocked = true;
  });
  f.queue.flush();
  CHECK(written == 0);
  CHECK(unlocked);
}

TEST_CASE("behind a stream that takes no more nobody is told") {
  Fixture f;
  f.queue.open();
  bool told = false;
  f.sink.room = 8;
  f.queue.append(ping(1), 0, false, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  append(f.queue, 2, [&] { told = true; });
  f.queue.flush();
  CHECK_FALSE(told);
  f.sink.room = 1'000'000;
  f.queue.flush_blocked();
  CHECK(told);
}

TEST_CASE("watches go with the queue") {
  auto kept = std::make_shared<int>(1);
  bool told = false;
  {
    Fixture f;
    append(f.queue, 1, [kept, &told] { told = true; });
    CHECK(kept.use_count() == 2);
    f.queue.close();
    CHECK(kept.use_count() == 1);
  }
  CHECK_FALSE(told);
}

}  // namespace output_watch_test
}  // namespace batchrpc
