#include "rl_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <batchrpc/base/error.hpp>
#include <batchrpc/transport/tcp_address.hpp>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "common/command_line.hpp"
#include "common/lists.hpp"
#include "common/meeting_place.hpp"

namespace rl_benchmark {
namespace {

using batchrpc_examples::UsageError;

constexpr int kMostProcesses = 1000;
constexpr std::int64_t kMostElements = 1 << 24;  // per state: 64 MiB
constexpr int kMostSteps = 1'000'000;            // an observer's latencies travel in one message

std::string flag_of(const std::string& name) {
  std::string flag = "--" + name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& why) {
  throw UsageError(flag_of(name) + ": '" + text + "' is " + why);
}

template <class T>
T number(const std::string& name, const std::string& text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    refuse(name, text, "not a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

template <class T>
T one_of(const std::string& name, const std::string& text, const std::map<std::string, T>& words) {
  const auto found = words.find(text);
  if (found != words.end()) return found->second;
  std::string all;
  for (const auto& [word, value] : words)
    all += (all.empty() ? "" : ", ") + word;
  refuse(name, text, "not one of " + all);
}

// The original's words.
bool truth(const std::string& name, const std::string& text) {
  static const std::map<std::string, bool> kWords{
      {"yes", true}, {"true", true},   {"t", true},  {"y", true},  {"1", true},
      {"no", false}, {"false", false}, {"f", false}, {"n", false}, {"0", false}};
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto found = kWords.find(lower);
  if (found == kWords.end()) refuse(name, text, "neither True nor False");
  return found->second;
}

std::vector<std::int64_t> sizes(const std::string& name, const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 1;
  std::istringstream stream(text + "-");
  for (std::string part; std::getline(stream, part, '-');) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    const bool fits = error == std::errc() && end == part.data() + part.size() && size >= 1 &&
                      size <= kMostElements / elements;
    if (!fits) {
      refuse(name, text,
             "not a state size: give numbers of at least 1 with - between, such as 10-20-10, of at "
             "most " +
                 std::to_string(kMostElements) + " elements");
    }
    elements *= size;
    sizes.push_back(size);
  }
  return sizes;
}

std::string address(const std::string& name, const std::string& text) {
  try {
    [[maybe_unused]] const auto fits =
        batchrpc::TcpAddress::parse(batchrpc::TcpAddress{.host = text, .port = 1}.to_string());
  } catch (const batchrpc::InvalidArgument& error) {
    throw UsageError(flag_of(name) + ": " + error.what());
  }
  return text;
}

enum class Kind : unsigned char { whole_number, truth, text };

struct Parameter {
  const char* name;
  Kind kind;
  const char* default_text;
  const char* help;
  void (*set)(Setting& setting, const std::string& name, const std::string& text);
};

using std::chrono::microseconds;
constexpr std::array kParameters{
    Parameter{"world_size", Kind::whole_number, "10",
              "processes: a coordinator, the agents, the rest observers",
              [](Setting& s, const auto& n, const auto& t) {
                s.world_size = number(n, t, 3, kMostProcesses);
              }},
    Parameter{"master_addr", Kind::text, "127.0.0.1", "host where the coordinator listens",
              [](Setting& s, const auto& n, const auto& t) { s.master_addr = address(n, t); }},
    Parameter{
        "master_port", Kind::text, "29501", "port where the coordinator listens",
        [](Setting& s, const auto& n, const auto& t) { s.master_port = number(n, t, 1, 65535); }},
    Parameter{"batch", Kind::truth, "True",
              "run the policy once for all observers' requests, instead of once for each",
              [](Setting& s, const auto& n, const auto& t) { s.batch = truth(n, t); }},
    Parameter{"state_size", Kind::text, "10-20-10", "shape of a state",
              [](Setting& s, const auto& n, const auto& t) { s.state_size = sizes(n, t); }},
    Parameter{"nlayers", Kind::whole_number, "5", "hidden layers of the policy",
              [](Setting& s, const auto& n, const auto& t) { s.nlayers = number(n, t, 0, 1000); }},
    Parameter{
        "out_features", Kind::whole_number, "10", "width of its layers, and actions",
        [](Setting& s, const auto& n, const auto& t) { s.out_features = number(n, t, 1, 65536); }},
    Parameter{"agents", Kind::whole_number, "1",
              "number of agents; observers are distributed among them",
              [](Setting& s, const auto& n, const auto& t) {
                s.agents = number(n, t, 1, kMostProcesses);
              }},
    Parameter{"episodes", Kind::whole_number, "10",
              "number of episodes; the first is for warming up and is reported separately",
              [](Setting& s, const auto& n, const auto& t) {
                s.episodes = number(n, t, 2, std::numeric_limits<int>::max());
              }},
    Parameter{
        "steps", Kind::whole_number, "100", "steps of each observer per episode",
        [](Setting& s, const auto& n, const auto& t) { s.steps = number(n, t, 1, kMostSteps); }},
    Parameter{"transport", Kind::text, "auto",
              "auto (Unix sockets between processes of one host), tcp or unix",
              [](Setting& s, const auto& n, const auto& t) {
                s.transport = one_of(n, t, batchrpc_examples::transports());
              }},
    Parameter{"num_worker_threads", Kind::whole_number, "0",
              "threads of the agent that run the policy; 0: the thread that reads requests",
              [](Setting& s, const auto& n, const auto& t) {
                s.num_worker_threads = number(n, t, 0, 1024);
              }},
    Parameter{"max_wait", Kind::whole_number, "0",
              "longest time in microseconds that a request waits for others; 0: no limit",
              [](Setting& s, const auto& n, const auto& t) {
                s.max_wait = microseconds(number(n, t, std::int64_t{0}, std::int64_t{60'000'000}));
              }},
    Parameter{
        "gather", Kind::text, "all",
        "when a batch starts: all (every observer has sent a request) or idle (the agent is idle)",
        [](Setting& s, const auto& n, const auto& t) {
          s.gather = one_of<Gather>(n, t, {{"all", Gather::all}, {"idle", Gather::idle}});
        }},
    Parameter{"busy_poll", Kind::whole_number, "1000",
              "microseconds that a waiting process polls before it sleeps",
              [](Setting& s, const auto& n, const auto& t) {
                s.busy_poll = microseconds(number(n, t, std::int64_t{0}, std::int64_t{1'000'000}));
              }},
    Parameter{"inference", Kind::truth, "False", "run the policy without gradient tracking",
              [](Setting& s, const auto& n, const auto& t) { s.inference = truth(n, t); }},
    Parameter{"seed", Kind::whole_number, "0", "seed; each process adds its rank",
              [](Setting& s, const auto& n, const auto& t) {
                s.seed = number(n, t, std::uint64_t{0},
                                std::uint64_t{std::numeric_limits<std::int64_t>::max()});
              }},
};

void check_world(const Setting& setting) {
  if (setting.observers() >= setting.agents) return;
  throw UsageError("--world-size " + std::to_string(setting.world_size) + " with --agents " +
                   std::to_string(setting.agents) +
                   ": each agent needs an observer, so it must be at least " +
                   std::to_string(1 + 2 * setting.agents));
}

std::string in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// Environment variables of torchrun and similar launchers apply where the command line gives
// nothing.
void take_environment(Options& options, const CLI::App& app) {
  const std::string rank = in_environment("RANK");
  const std::string world_size = in_environment("WORLD_SIZE");
  if (rank.empty() != world_size.empty()) {
    throw UsageError(std::string("the environment has ") + (rank.empty() ? "WORLD_SIZE" : "RANK") +
                     ", but no " + (rank.empty() ? "RANK" : "WORLD_SIZE"));
  }
  if (rank.empty()) return;
  const auto take = [&](const char* variable, const std::string& name) {
    const std::string text = in_environment(variable);
    if (text.empty()) throw UsageError(std::string("the environment has RANK, but no ") + variable);
    const auto argument = std::find_if(options.arguments.begin(), options.arguments.end(),
                                       [&](const Argument& one) { return one.name == name; });
    if (app.count(flag_of(name)) > 0 && argument->text != text) {
      throw UsageError(flag_of(name) + " " + argument->text + ": " + variable +
                       " in the environment is " + text);
    }
    argument->text = text;
  };
  take("WORLD_SIZE", "world_size");
  take("MASTER_ADDR", "master_addr");
  take("MASTER_PORT", "master_port");
  try {
    options.rank = number("rank", rank, 0, kMostProcesses - 1);
  } catch (const UsageError&) {
    throw UsageError("RANK in the environment is not a rank: " + rank);
  }
}

void find_x_axis(Options& options) {
  for (const Argument& argument : options.arguments) {
    const std::vector<std::string_view> values = batchrpc_benchmarks::split(argument.text);
    if (values.size() < 2) continue;
    if (!options.x_axis.empty()) {
      throw UsageError("only one argument may have several values: " + flag_of(options.x_axis) +
                       " and " + flag_of(argument.name) + " have");
    }
    options.x_axis = argument.name;
    options.x_values.assign(values.begin(), values.end());
  }
}

void make_settings(Options& options) {
  const std::size_t runs = std::max<std::size_t>(options.x_values.size(), 1);
  for (std::size_t run = 0; run < runs; ++run) {
    Setting setting;
    for (std::size_t i = 0; i < kParameters.size(); ++i) {
      const Argument& argument = options.arguments[i];
      const bool swept = argument.name == options.x_axis;
      kParameters[i].set(setting, argument.name, swept ? options.x_values[run] : argument.text);
    }
    check_world(setting);
    if (options.rank && *options.rank >= setting.world_size) {
      throw UsageError("RANK " + std::to_string(*options.rank) +
                       " does not exist with --world-size " + std::to_string(setting.world_size));
    }
    options.settings.push_back(std::move(setting));
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  const auto parser = batchrpc_examples::make_parser(
      "The RL throughput benchmark of torch.distributed.rpc on batchrpc: observers ask an agent "
      "for "
      "actions, and a coordinator measures. Any one argument may have several values, separated by "
      "commas; each gets a run. With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the "
      "environment (torchrun) this is one process of the run; otherwise it starts all. Exit code "
      "3: "
      "the run ended early, and the measurements so far are reported.");
  CLI::App& app = *parser;
  Options options;
  for (const Parameter& parameter : kParameters)
    options.arguments.push_back({.name = parameter.name, .text = parameter.default_text});
  for (std::size_t i = 0; i < kParameters.size(); ++i) {
    // Accepts the original's older names too.
    const std::string name = kParameters[i].name;
    const std::string flag = flag_of(name);
    const std::string flags = flag == "--" + name ? flag : flag + ",--" + name;
    app.add_option(flags, options.arguments[i].text, kParameters[i].help)->capture_default_str();
  }
  app.add_option("--output-file-path,--output_file_path", options.output_file_path,
                 "JSON file for the report")
      ->capture_default_str();
  std::string progress = "True";
  app.add_option("--progress", progress, "print a line for each episode")->capture_default_str();
  const bool run = batchrpc_examples::parse_command_line(app, argc, argv, [&] {
    options.progress = truth("progress", progress);
    take_environment(options, app);
    find_x_axis(options);
    if (options.rank && options.x_axis == "world_size") {
      throw UsageError("--world-size: a run whose processes were started already has one size");
    }
    make_settings(options);
    if (options.rank.value_or(0) == 0) {
      batchrpc_examples::check_writable("--output-file-path", options.output_file_path);
    }
  });
  if (!run) return std::nullopt;
  return options;
}

nlohmann::json value_json(const std::string& name, const std::string& text) {
  const auto* const parameter =
      std::find_if(kParameters.begin(), kParameters.end(),
                   [&](const Parameter& one) { return one.name == name; });
  if (parameter->kind == Kind::truth) return truth(name, text);
  if (parameter->kind == Kind::whole_number) {
    return number(name, text, std::int64_t{0}, std::numeric_limits<std::int64_t>::max());
  }
  return text;
}

}  // namespace rl_benchmark
