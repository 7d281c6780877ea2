#include <algorithm>
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
  // Used on the loop only.
  class Timetable {
   public:
    Timetable(std::shared_ptr<Loop> loop, std::function<Duration(std::size_t)> time,
              std::size_t count)
        : loop_(std::move(loop)), time_(std::move(time)), free_at_(count) {}

    void run(const std::shared_ptr<LaneTask>& task) {
      const TimePoint now = loop_->now();
      TimePoint end = now;
      for (std::size_t lane = 0; lane < free_at_.size(); ++lane) {
        task->run(lane);
        free_at_[lane] = after(std::max(now, free_at_[lane]), time_(lane));
        end = std::max(end, free_at_[lane]);
      }
      loop_->schedule(end, [task] { task->done(); });
    }

   private:
    const std::shared_ptr<Loop> loop_;
    const std::function<Duration(std::size_t)> time_;
    std::vector<TimePoint> free_at_;
  };

  const std::size_t count_;
  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Timetable> timetable_;
};

}  // namespace

std::unique_ptr<Lanes> timed_lanes(std::size_t count, std::shared_ptr<Loop> loop,
                                   std::function<Duration(std::size_t lane)> time) {
  if (count == 0) throw InvalidArgument("timed_lanes: there must be a lane at least");
  return std::make_unique<TimedLanes>(count, std::move(loop), std::move(time));
}

}  // namespace batchrpc
