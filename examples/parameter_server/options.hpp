#pragma once

#include <batchrpc/call/node_options.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "common/meeting_place.hpp"
#include "parameter_server/parameter_server.hpp"

namespace batchrpc_examples {

struct ParameterServerOptions {
  static constexpr int kMostProcesses = 256;

  int trainers = 5;
  int servers = 1;  ///< each has a part of the model
  int iterations = 6;
  int batch_size = 20;  ///< images of a trainer in an iteration
  int image = 64;       ///< pixels of an image's side
  int classes = 30;
  double learning_rate = 1e-3;
  double momentum = 0.9;
  UpdateMode mode = UpdateMode::batch;
  bool synthetic = false;  ///< nobody computes: gradients of ones, and the model stays
  bool sum = true;
  bool refuse_nan = false;
  bool buffers = false;  ///< the server's, of batch norm, go to the trainers with the model
  bool check = false;
  bool cuda = false;
  std::uint64_t seed = 543;

  TransportChoice transport = TransportChoice::automatic;
  std::optional<int> rank{};  ///< nothing: this process is server 0, and starts all the others
  std::string join{};         ///< where rank 0 listens; nothing without a rank
  bool launched = false;      ///< another process started this one, and will end it

  std::string checkpoint{};  ///< a folder; empty: none
  int checkpoint_every = 1;
  bool quiet = false;
  std::string json{};    ///< paths that can be written; empty: not wanted
  std::string figure{};  ///< ends in .svg

  /// Ranks below `servers` are servers, the others trainers.
  [[nodiscard]] bool is_server() const { return rank.value_or(0) < servers; }
  [[nodiscard]] int trainer_index() const { return rank.value_or(0) - servers; }
};

/// Nothing when help was asked for, which it prints. Takes RANK, WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT of the environment. Throws UsageError.
std::optional<ParameterServerOptions> parse_parameter_server_options(int argc,
                                                                     const char* const* argv);

/// The .png of a --figure.
std::string png_beside(const std::string& svg);
std::string server_name(int index);
std::string trainer_name(int index);
/// Such as "batch".
std::string to_string(UpdateMode mode);

/// For a process with a rank.
batchrpc::NodeOptions node_options(const ParameterServerOptions& options);

/// What a model that goes on from a checkpoint must have in common with the one that wrote it, in
/// one line for people.
std::string model_settings(const ParameterServerOptions& options);

/// Whose gradients an iteration has, in words: the same for those that give the same model.
std::string gradient_settings(const ParameterServerOptions& options);
/// In place of gradient_settings() where iterations differ in them.
inline constexpr const char* kChangingTrainers = "trainers that came, went or changed";

}  // namespace batchrpc_examples
