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

/// How gradients become a new model.
enum class UpdateMode : unsigned char {
  batch,  ///< the mean of all trainers', in one batch that answers all
  sync,   ///< the same with a call a trainer, counted by hand
  async,  ///< each by itself, on arrival: one model is sent while the next is written
};

/// What a trainer is told when it may begin.
struct TrainingStart {
  std::int64_t iteration = 0;   ///< the next one
  std::int64_t iterations = 0;  ///< where it ends
  std::int64_t parameters = 0;  ///< in the server's part of the model
  std::int64_t elements = 0;    ///< with the buffers behind them
  UpdateMode mode = UpdateMode::batch;
};

/// What a trainer tells of an iteration.
struct IterationReport {
  std::int64_t iteration = 0;
  double loss = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;  ///< for the server: transfers, other trainers, the update
  double seconds = 0;       ///< all of it
};

/// What the server knows of an update.
struct UpdateReport {
  std::int64_t iteration = 0;  ///< async: of the trainer whose gradient it was
  std::int64_t finished = 0;   ///< iterations that the model has had; async: of all trainers
  std::int64_t gradients = 0;
  double sum_seconds = 0;
  double step_seconds = 0;
  double checkpoint_seconds = 0;
  std::int64_t staleness = 0;  ///< async: updates since the trainer had its model
};

struct ServerOptions {
  std::size_t trainers = 5;  ///< that begin together
  std::int64_t first_iteration = 0;
  std::int64_t iterations = 6;
  UpdateMode mode = UpdateMode::batch;
  GradientSumOptions sum{};
  bool step = true;                ///< else the model stays as it is
  bool in_order_of_ranks = false;  ///< gradients are added so: the same bits in every run
};

/// What is told of a server, on its threads; short.
struct ServerEvents {
  std::function<void(const UpdateReport&)> updated = [](const UpdateReport&) {};
  /// With the trainer's name.
  std::function<void(const std::string&, const IterationReport&)> reported =
      [](const std::string&, const IterationReport&) {};
  /// A trainer is in a training that had begun; with the number of all. Of several servers, each
  /// time that it tries until they are in the same iteration.
  std::function<void(const batchrpc::PeerIdentity&, std::size_t)> joined =
      [](const batchrpc::PeerIdentity&, std::size_t) {};
  /// A trainer that is not lost ends before the training does; with its name, and why.
  std::function<void(const std::string&, const std::string&)> failed = [](const std::string&,
                                                                          const std::string&) {};
  /// After an update that finishes an iteration, before anybody has the new model.
  std::function<void(const UpdateReport&, SharedModel&)> checkpoint{};
};

/// The server of a model, or of a part of one, to which trainers have an RRef. A trainer joins,
/// fetches the model, and then sends its gradients in each iteration and gets the new model as the
/// answer. Thread-safe.
class ParameterServer {
 public:
  /// `values` are [n] parameters, and buffers behind.
  ParameterServer(const ServerOptions& options, at::Tensor values, std::int64_t parameters,
                  const SgdOptions& sgd, ServerEvents events);
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  /// Ready when the caller is in the training; from then on iterations wait for it.
  batchrpc::Future<TrainingStart> join();
  /// The model as it is, float32 [elements].
  at::Tensor fetch_model() { return model_.values(); }
  /// By mode `sync`, and only there; else as update_and_fetch_model. What is counted by hand is not
  /// taken in by turns: memory grows with the number of trainers.
  batchrpc::Future<at::Tensor> update_by_hand(const at::Tensor& gradient);
  void report(const IterationReport& report);
  /// Keeps what a trainer has in the end, the whole model, for result().
  void keep_result(at::Tensor values);
  /// Undefined unless one was kept.
  [[nodiscard]] at::Tensor result() const;
  /// The caller has finished.
  void leave();
  /// The caller cannot go on, and says why.
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
  /// Of a trainer, where each goes its own way.
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
  std::int64_t version_ = 0;  // async: updates that were made
  std::map<std::string, Progress> progress_;
  mutable std::mutex result_mutex_;
  at::Tensor result_;

 public:
  /// Takes a gradient, float32 [parameters], and gives the new model, when all trainers have sent
  /// theirs. Fails with InvalidArgument for another type or shape, a caller who has not joined, or
  /// in mode `sync`; the iteration goes on with the others, and the caller may send another.
  Update update_and_fetch_model;

 private:
  TrainingGroup group_;
};

}  // namespace batchrpc_examples
