#include "call_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include "common/command_line.hpp"
#include "common/lists.hpp"

namespace call_benchmark {

namespace {

constexpr int kMostConnections = 256;
constexpr int kMostInFlight = 1024;  // so that all calls in flight fit the sockets' buffers
constexpr std::pair<double, double> kSeconds{0.01, 60};
constexpr std::pair<int, int> kRounds{1, 1000};
constexpr int kMaxBusyPoll = 1'000'000;

constexpr std::array kRoles{
    std::pair{Role::floor_server, "floor-server"},
    std::pair{Role::node_server, "node-server"},
    std::pair{Role::many_nodes, "many-nodes"},
    std::pair{Role::calling_node, "calling-node"},
    std::pair{Role::pending_calls, "pending-calls"},
    std::pair{Role::called_node, "called-node"},
    std::pair{Role::joining_nodes, "joining-nodes"},
    std::pair{Role::pestered_server, "pestered-server"},
    std::pair{Role::strangers, "strangers"},
    std::pair{Role::overloaded_server, "overloaded-server"},
};

constexpr auto kAbout =
    "Measures calls between two batchrpc nodes. In turn with each figure it measures a plain epoll "
    "loop over the same transport (the floor).\n";

[[noreturn]] void refuse(const std::string& option, std::string_view value,
                         const std::string& expected) {
  throw UsageError(option + ": '" + std::string(value) + "' is not " + expected);
}

/// Parses each part of a list with `parse`. Rejects duplicates.
template <class T, class Parse>
std::vector<T> parse_list(const std::string& option, const std::string& text, Parse parse) {
  std::vector<T> list;
  for (const std::string_view part : batchrpc_benchmarks::split(text)) {
    const T value = parse(part);
    if (std::find(list.begin(), list.end(), value) != list.end()) {
      throw UsageError(option + ": '" + std::string(part) + "' is given twice");
    }
    list.push_back(value);
  }
  return list;
}

/// Parses a list of names; each must be the to_string() of one of `values`.
template <class T>
std::vector<T> parse_names(const std::string& option, const std::string& text,
                           const std::vector<T>& values) {
  return parse_list<T>(option, text, [&](std::string_view part) {
    std::string names;
    for (const T value : values) {
      if (to_string(value) == part) return value;
      names += (names.empty() ? "" : ", ") + std::string(to_string(value));
    }
    refuse(option, part, "one of " + names);
  });
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Shape parse_shape(std::string_view text) {
  const std::size_t cross = text.find('x');
  std::optional<int> connections = 1;
  std::string_view each = text;
  if (cross != std::string_view::npos) {
    connections = whole_number(text.substr(0, cross));
    each.remove_prefix(cross + 1);
  }
  const std::optional<int> in_flight = whole_number(each);
  if (!connections || !in_flight || *connections < 1 || *connections > kMostConnections ||
      *in_flight < 1 || *in_flight > kMostInFlight) {
    refuse("--in-flight", text,
           "a number of calls from 1 to " + std::to_string(kMostInFlight) +
               ", or CxN with C connections from 1 to " + std::to_string(kMostConnections));
  }
  return {.connections = *connections, .in_flight = *in_flight};
}

int parse_profiler(std::string_view text) {
  if (text == "off") return 0;
  const std::optional<int> every = whole_number(text);
  if (!every || *every < 1) refuse("--profiler", text, "off, or a number of at least 1");
  return *every;
}

bool parse_yes(std::string_view text) {
  if (text != "yes" && text != "no") refuse("--pinned", text, "yes or no");
  return text == "yes";
}

struct Texts {
  std::string transports, cases, shapes, pinned, handlers, styles, floors, profilers, role,
      transport;
  std::optional<double> seconds;
};

void add_options(CLI::App& app, Options& options, Texts& texts) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("--transport", texts.transports, "tcp,tls,unix,inproc (all)");
  app.add_option("--case", texts.cases, "payload64,scalars3 (both)");
  app.add_option("--in-flight", texts.shapes,
                 "Calls in flight: N, or connections x N each (1,64,256,64x1)");
  app.add_option("--pinned", texts.pinned, "Both processes on one CPU: yes,no (both)");
  app.add_option("--handlers", texts.handlers, "short,workers (both)");
  app.add_option("--style", texts.styles, "How results are taken: get,then (both)");
  app.add_option("--floor", texts.floors, "blocking,busy,frame-sized (all; blocking always)");
  app.add_option("--profiler", texts.profilers,
                 "Record one in N calls with a Profiler on the calling nodes: off,N (off)");
  app.add_option(
      "--seconds", texts.seconds,
      "Seconds per sample (0.2), of --idle (5), per sample of --strangers (1), of --overload (10)");
  app.add_option("--rounds", options.rounds, "Samples per figure (5)");
  app.add_option(
      "--busy-poll", options.busy_poll,
      "Microseconds that waiting threads of both nodes poll (0); ratios are then relative to "
      "the busy-polled floor");
  app.add_option("--json", options.json, "Write the figures to this file");
  app.add_flag("--memory", options.memory,
               "Measure instead: bytes per connection and per pending call");
  app.add_flag("--idle", options.idle,
               "Measure instead: CPU time of connected, idle nodes; with --memory, after that");
  app.add_flag("--strangers", options.strangers,
               "Measure instead: calls over tcp (or tls) while strangers connect to the same port");
  app.add_flag("--overload", options.overload,
               "Measure instead: calls answered in time at five times the capacity");
  // For children only.
  app.add_option("--role", texts.role)->group("");
  app.add_option("--line-file", options.line_file)->group("");
  app.add_option("--address", options.address)->group("");
  app.add_option("--count", options.count)->group("");
}

void take(const Texts& texts, Options& options) {
  const Options all;
  if (!texts.transports.empty()) {
    options.transports = parse_names("--transport", texts.transports, all.transports);
  }
  if (!texts.cases.empty()) options.cases = parse_names("--case", texts.cases, all.cases);
  if (!texts.handlers.empty()) {
    options.handlers = parse_names("--handlers", texts.handlers, all.handlers);
  }
  if (!texts.styles.empty()) options.styles = parse_names("--style", texts.styles, all.styles);
  if (!texts.floors.empty()) {
    options.floors = parse_names("--floor", texts.floors, all.floors);
    std::erase(options.floors, Floor::blocking);
    options.floors.insert(options.floors.begin(), Floor::blocking);
  }
  if (!texts.shapes.empty()) {
    options.shapes = parse_list<Shape>("--in-flight", texts.shapes, parse_shape);
  }
  if (!texts.profilers.empty()) {
    options.profilers = parse_list<int>("--profiler", texts.profilers, parse_profiler);
  }
  if (!texts.pinned.empty()) {
    options.pinned = parse_list<bool>("--pinned", texts.pinned, parse_yes);
  }
  if (texts.seconds) {
    options.seconds = *texts.seconds;
  } else if (options.overload) {
    options.seconds = 10;
  } else if (options.idle || options.strangers) {
    options.seconds = options.idle ? 5 : 1;
  }
  if (!(options.seconds >= kSeconds.first && options.seconds <= kSeconds.second)) {
    throw UsageError("--seconds: must be from 0.01 to 60");
  }
  if (options.rounds < kRounds.first || options.rounds > kRounds.second) {
    throw UsageError("--rounds: must be from 1 to 1000");
  }
  if (options.busy_poll < 0 || options.busy_poll > kMaxBusyPoll) {
    throw UsageError("--busy-poll: must be from 0 to 1000000 microseconds");
  }
  if (options.busy_poll > 0) {
    std::erase(options.floors, Floor::busy);
    options.floors.insert(options.floors.begin(), Floor::busy);
  }
  if (!texts.role.empty()) {
    const auto* at = std::find_if(kRoles.begin(), kRoles.end(),
                                  [&](const auto& role) { return role.second == texts.role; });
    if (at == kRoles.end()) throw UsageError("--role is for internal use only");
    options.role = at->first;
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  const auto parser = batchrpc_examples::make_parser(kAbout, "call_benchmark");
  CLI::App& app = *parser;
  Options options;
  Texts texts;
  add_options(app, options, texts);
  const bool go_on = batchrpc_examples::parse_command_line(app, argc, argv, [&] {
    // An empty list means no values, not the default.
    for (const CLI::Option* option : app.get_options()) {
      const auto& results = option->results();
      if (option->get_expected_max() > 0 &&
          std::find(results.begin(), results.end(), "") != results.end()) {
        throw UsageError(option->get_name() + ": needs a value");
      }
    }
    take(texts, options);
    if (!options.json.empty()) batchrpc_examples::check_writable("--json", options.json);
  });
  if (!go_on) return std::nullopt;
  return options;
}

std::vector<std::string> child_arguments(Role role, Transport transport, int line_file,
                                         const std::string& address, int count, int busy_poll) {
  const auto* at = std::find_if(kRoles.begin(), kRoles.end(),
                                [&](const auto& entry) { return entry.first == role; });
  if (at == kRoles.end()) throw std::invalid_argument("not a child's role");
  std::vector<std::string> arguments{"--role",      at->second,
                                     "--transport", std::string(to_string(transport)),
                                     "--line-file", std::to_string(line_file)};
  if (!address.empty()) arguments.insert(arguments.end(), {"--address", address});
  if (count != 0) arguments.insert(arguments.end(), {"--count", std::to_string(count)});
  if (busy_poll != 0) {
    arguments.insert(arguments.end(), {"--busy-poll", std::to_string(busy_poll)});
  }
  return arguments;
}

}  // namespace call_benchmark
