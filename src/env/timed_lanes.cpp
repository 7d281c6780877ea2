#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/env/lanes.hpp"

namespace batchrpc {
namespace {

class TimedLanes final : public Lanes {
 public:
  TimedLanes(std::size_t count, std::shared_ptr<Loop> loop,
             std::function<Duration(std::size_t)> time)
      : count_(count),
        loop_(loop),
        timetable_(std::make_shared<Timetable>(std::move(loop), std::move(time), count)) {}

  [[nodiscard]] std::size_t count() const noexcept override { return count_; }

  void run(std::shared_ptr<LaneTask> task) override {
    loop_->post([timetable = timetable_, task = std::move(task)] { timetable->run(task); });
  }

 private:
  // Used only on the loop's thread.
  class Timetable : public std::enable_shared_from_this<Timetable> {
   public:
    Timetable(std::shared_ptr<Loop> loop, std::function<Duration(std::size_t)> time,
              std::size_t count)
        : loop_(std::move(loop)), time_(std::move(time)), lanes_(count) {}

    void run(std::shared_ptr<LaneTask> task) {
      const auto given = std::make_shared<Given>(Given{std::move(task), lanes_.size()});
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        lanes_[lane].push_back(given);
        if (lanes_[lane].size() == 1) begin(lane);
      }
    }

   private:
    struct Given {
      std::shared_ptr<LaneTask> task;
      std::size_t shares_left;
    };

    void begin(std::size_t lane) {
      LaneTask& task = *lanes_[lane].front()->task;
      TimePoint end = loop_->now();
      for (std::size_t step = task.steps(); step > 0; --step)
        end = after(end, time_(lane));
      task.run(lane);
      loop_->schedule(end, [self = shared_from_this(), lane] { self->end(lane); });
    }

    void end(std::size_t lane) {
      const std::shared_ptr<Given> given = std::move(lanes_[lane].front());
      lanes_[lane].pop_front();
      if (!lanes_[lane].empty()) begin(lane);
      if (--given->shares_left == 0) given->task->done();
    }

    const std::shared_ptr<Loop> loop_;
    const std::function<Duration(std::size_t)> time_;
    std::vector<std::deque<std::shared_ptr<Given>>> lanes_;  // remaining tasks, in order
  };

  const std::size_t count_;
  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Timetable> timetable_;
};

}  // namespace

std::unique_ptr<Lanes> timed_lanes(std::size_t count, std::shared_ptr<Loop> loop,
                                   std::function<Duration(std::size_t lane)> time) {
  if (count == 0) throw InvalidArgument("timed_lanes: there must be at least one lane");
  return std::make_unique<TimedLanes>(count, std::move(loop), std::move(time));
}

}  // namespace batchrpc
