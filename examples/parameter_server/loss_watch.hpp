#pragma once

#include <cmath>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "parameter_server/parameter_server.hpp"

namespace batchrpc_examples {

/// Reports the first loss that is NaN or infinite; later ones are its consequence. Thread-safe.
class LossWatch {
 public:
  explicit LossWatch(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}

  void reported(const std::string& trainer, const IterationReport& report) {
    if (std::isfinite(report.loss)) return;
    std::call_once(told_, [&] {
      tell_("the loss of " + trainer + " in iteration " + std::to_string(report.iteration) +
            " is " + (std::isnan(report.loss) ? "NaN" : "infinite") +
            "; with --refuse-nan gradients of NaN or infinity are refused");
    });
  }

 private:
  const std::function<void(const std::string&)> tell_;
  std::once_flag told_;
};

}  // namespace batchrpc_examples
