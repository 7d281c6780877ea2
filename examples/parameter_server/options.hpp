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
  int servers = 1;  ///< each holds a part of the model
  int iterations = 6;
  int batch_size = 20;  ///< images per trainer and iteration
  int image = 64;       ///< width and height of an image in pixels
  int classes = 30;
  double learning_rate = 1e-3;
  double momentum = 0.9;
  UpdateMode mode = UpdateMode::batch;
  bool synthetic = false;  ///< no computation: gradients are ones, and the model does not change
  bool sum = true;
  bool refuse_nan = false;
  bool buffers = false;  ///< send the server's buffers of batch norm with the model
  bool check = false;
  bool cuda = false;
  std::uint64_t seed = 543;

  TransportChoice transport = TransportChoice::automatic;
  std::optional<int> rank{};  ///< nothing: this process is server 0, and starts all the others
  std::string join{};         ///< where rank 0 listens; nothing without a rank
  bool launched = false;      ///< another process started this one, and will end it

  std::string checkpoint{};  ///< a folder; empty: no checkpoints
  int checkpoint_every = 1;
  bool quiet = false;
  std::string json{};    ///< writable path; empty: not wanted
  std::string figure{};  ///< ends in .svg

  /// Ranks below `servers` are servers, the others are trainers.
  [[nodiscard]] bool is_server() const { return rank.value_or(0) < servers; }
  [[nodiscard]] int trainer_index() const { return rank.value_or(0) - servers; }
};

/// Parses the command line, and takes RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT from the
/// environment. Returns nothing after it has printed help. Throws UsageError.
std::optional<ParameterServerOptions> parse_parameter_server_options(int argc,
                                                                     const char* const* argv);

/// The path of the .png that belongs to a --figure.
std::string png_beside(const std::string& svg);
std::string server_name(int index);
std::string trainer_name(int index);
/// The mode's name, such as "batch".
std::string to_string(UpdateMode mode);

/// The options of a node, for a process with a rank.
batchrpc::NodeOptions node_options(const ParameterServerOptions& options);

/// The settings that a model must share with the checkpoint it continues from, as one line of text.
std::string model_settings(const ParameterServerOptions& options);

/// Whose gradients an iteration has, as text. Equal texts give equal models.
std::string gradient_settings(const ParameterServerOptions& options);
/// Used instead of gradient_settings() if iterations differ in it.
inline constexpr const char* kChangingTrainers = "trainers that joined, left or changed";

}  // namespace batchrpc_examples
