#pragma once

#include <ATen/ATen.h>

#include <batchrpc/batchrpc.hpp>
#include <batchrpc/torch.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "parameter_server/gradient_sum.hpp"
#include "parameter_server/shared_model.hpp"
#include "parameter_server/training_group.hpp"

namespace batchrpc_examples {

/// How gradients update the model.
enum class UpdateMode : unsigned char {
  batch,  ///< the mean of all gradients, in one batch that answers all trainers
  sync,   ///< the same with one call per trainer, counted by hand
  async,  ///< each on arrival: one model is sent while the next is written
};

/// The information with which a trainer begins.
struct TrainingStart {
  std::int64_t iteration = 0;   ///< the next one
  std::int64_t iterations = 0;  ///< the number at which it ends
  std::int64_t parameters = 0;  ///< in the server's part of the model
  std::int64_t elements = 0;    ///< parameters plus the buffers behind them
  UpdateMode mode = UpdateMode::batch;
};

/// A trainer's report about an iteration.
struct IterationReport {
  std::int64_t iteration = 0;
  double loss = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;  ///< waiting for the server: transfers, other trainers, the update
  double seconds = 0;       ///< the whole iteration
};

/// The server's record of an update.
struct UpdateReport {
  std::int64_t iteration = 0;  ///< async: that of the trainer that sent the gradient
  std::int64_t finished =
      0;  ///< iterations that the model has had; async: that all trainers have finished
  std::int64_t gradients = 0;
  double sum_seconds = 0;
  double step_seconds = 0;
  double checkpoint_seconds = 0;
  std::int64_t staleness = 0;  ///< async: updates since the trainer received its model
};

struct ServerOptions {
  std::size_t trainers = 5;  ///< that begin together
  std::int64_t first_iteration = 0;
  std::int64_t iterations = 6;
  UpdateMode mode = UpdateMode::batch;
  GradientSumOptions sum{};
  bool step = true;  ///< else the model does not change
  bool in_order_of_ranks =
      false;  ///< gradients are added in this order: the same bits in every run
};

/// Callbacks of a server, which run on its threads and must be short.
struct ServerEvents {
  std::function<void(const UpdateReport&)> updated = [](const UpdateReport&) {};
  /// Gets the trainer's name.
  std::function<void(const std::string&, const IterationReport&)> reported =
      [](const std::string&, const IterationReport&) {};
  /// A trainer has joined a training that had begun; gets the number of all trainers. With several
  /// servers, it is called for each attempt until they are in the same iteration.
  std::function<void(const batchrpc::PeerIdentity&, std::size_t)> joined =
      [](const batchrpc::PeerIdentity&, std::size_t) {};
  /// A trainer that is not lost ends before the training does; gets its name and the reason.
  std::function<void(const std::string&, const std::string&)> failed = [](const std::string&,
                                                                          const std::string&) {};
  /// Called after an update that finishes an iteration, before any trainer has the new model.
  std::function<void(const UpdateReport&, SharedModel&)> checkpoint{};
};

/// The server of a model, or of a part of one. Trainers have an RRef to it. A trainer joins and
/// fetches the model. Then it sends its gradients in each iteration and gets the new model as the
/// answer. Thread-safe.
class ParameterServer {
 public:
  /// `values` are the [n] parameters, followed by buffers.
  ParameterServer(const ServerOptions& options, at::Tensor values, std::int64_t parameters,
                  const SgdOptions& sgd, ServerEvents events);
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  /// Ready when the caller is in the training; from then on iterations wait for it.
  batchrpc::Future<TrainingStart> join();
  /// The present model, float32 [elements].
  at::Tensor fetch_model() { return model_.values(); }
  /// Like update_and_fetch_model, but only for mode `sync`. Gradients counted by hand are not
  /// received in turns, so memory grows with the number of trainers.
  batchrpc::Future<at::Tensor> update_by_hand(const at::Tensor& gradient);
  void report(const IterationReport& report);
  /// Keeps a trainer's final values, the whole model, for result().
  void keep_result(at::Tensor values);
  /// The kept values; undefined if there are none.
  [[nodiscard]] at::Tensor result() const;
  /// The caller has finished.
  void leave();
  /// The caller cannot continue, for the reason `why`.
  void fail(const std::string& why);

  /// A trainer is gone. Returns whether it was in the training.
  bool lose(const batchrpc::PeerIdentity& trainer);
  [[nodiscard]] const TrainingGroup& group() const { return group_; }
  [[nodiscard]] SharedModel& model() { return model_; }

 private:
  using Update = batchrpc::Batcher<at::Tensor(at::Tensor)>;

  struct Waiting {
    batchrpc::PeerIdentity trainer;
    batchrpc::Promise<at::Tensor> promise;
  };
  /// The progress of a trainer in mode async.
  struct Progress {
    std::int64_t version = 0;  ///< the model that it has
    std::int64_t iteration = 0;
  };

  GradientSum gradient_sum();
  Update make_update();
  void check_caller(bool by_hand) const;
  void wait_for(const std::vector<std::string>& trainers);
  at::Tensor finish_update(const GradientTotal& total, const batchrpc::BatchInfo& info);
  [[nodiscard]] std::int64_t own_iteration(const std::string& trainer) const;
  void count_own(const std::string& trainer, UpdateReport& report);
  std::int64_t finished_without(const std::string& trainer);
  [[nodiscard]] std::int64_t finished_by_all() const;
  void update_when_all_are_there();

  const ServerOptions options_;
  const ServerEvents events_;
  SharedModel model_;
  std::mutex by_hand_mutex_;
  GradientSum by_hand_;
  std::vector<Waiting> waiting_;
  mutable std::mutex progress_mutex_;
  std::int64_t version_ = 0;  // async: number of updates made
  std::map<std::string, Progress> progress_;
  mutable std::mutex result_mutex_;
  at::Tensor result_;

 public:
  /// Takes a gradient, float32 [parameters], and returns the new model when all trainers have sent
  /// theirs. Fails with InvalidArgument for another type or shape, for a caller that has not
  /// joined, or in mode `sync`. The iteration then continues with the others, and the caller may
  /// send another gradient.
  Update update_and_fetch_model;

 private:
  TrainingGroup group_;
};

}  // namespace batchrpc_examples
