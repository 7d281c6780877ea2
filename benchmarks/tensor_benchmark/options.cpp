#include "tensor_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>
#include <stdexcept>

#include "common/command_line.hpp"
#include "common/option_checks.hpp"

namespace tensor_benchmark {

namespace {

using batchrpc_examples::between;
using batchrpc_examples::UsageError;

constexpr int kMostWindow = 64;

/// What the words of an option stand for.
template <class T>
using Words = std::map<std::string, T>;

/// The values by their names.
template <class T>
Words<T> by_name(std::initializer_list<T> values) {
  Words<T> words;
  for (const T value : values)
    words.emplace(to_string(value), value);
  return words;
}

const Words<Mode>& modes() {
  static const auto words = by_name({Mode::echo, Mode::push});
  return words;
}
const Words<Transport>& transports() {
  static const auto words = by_name({Transport::tcp, Transport::unix_socket, Transport::inproc});
  return words;
}
const Words<Receive>& receives() {
  static const auto words = by_name({Receive::fresh, Receive::into});
  return words;
}
const Words<Handlers>& handlers() {
  static const auto words = by_name({Handlers::on_workers, Handlers::short_ones});
  return words;
}
const Words<bool>& yes_and_no() {
  static const Words<bool> words{{"yes", true}, {"no", false}};
  return words;
}
const Words<Role>& roles() {
  static const Words<Role> words{{"floor-server", Role::floor_server},
                                 {"node-server", Role::node_server}};
  return words;
}

/// What was given to options whose values are words, or numbers with a unit.
struct Texts {
  std::vector<std::string> modes{}, bytes{}, transports{}, contiguous{}, pinned{}, receive{};
  std::string handlers{}, role{};
};

CLI::Option* list_of(CLI::Option* option) {
  return option->delimiter(',')->allow_extra_args(false);
}

void add_options(CLI::App& app, Options& options, Texts& texts) {
  app.set_help_flag("-h,--help", "Print this and end");
  list_of(app.add_option("--mode", texts.modes, "echo,push (both)"));
  list_of(app.add_option("--bytes", texts.bytes,
                         "Of a tensor, 1K to 1G, multiples of 8 (1K,64K,1M,16M,64M,256M)"));
  list_of(app.add_option("--transport", texts.transports, "tcp,unix,inproc (all)"));
  list_of(app.add_option("--window", options.windows, "Calls under way (1 of echoes, 8 of pushes)"))
      ->check(between(1, kMostWindow));
  list_of(app.add_option("--contiguous", texts.contiguous,
                         "yes,no: a dense tensor, a transposed view (both)"));
  list_of(app.add_option("--pinned", texts.pinned, "yes,no: both processes on one CPU, free (no)"));
  list_of(app.add_option("--receive", texts.receive,
                         "fresh,into: echoes that make a tensor each, by call_into (both)"));
  app.add_option("--handlers", texts.handlers,
                 "workers|short: where the server's functions run (workers)");
  app.add_option("--seconds", options.seconds, "Length of a sample; at least a window of calls")
      ->check(between(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Samples of each figure")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures to this file");
  app.add_flag("!--no-floor", options.floor, "Measure batchrpc alone");
  // For children only.
  app.add_option("--role", texts.role)->group("");
  app.add_option("--line-file", options.line_file)->group("");
  app.add_option("--counts-file", options.counts_file)->group("");
}

template <class T>
void take(const std::string& option, const std::string& text, const Words<T>& words, T& value) {
  const auto at = words.find(text);
  if (at == words.end()) {
    std::string all;
    for (const auto& [word, meaning] : words)
      all += (all.empty() ? "" : "|") + word;
    throw UsageError(option + ": '" + text + "' is none of " + all);
  }
  value = at->second;
}

template <class T>
void require_different(const std::string& option, std::vector<T> values) {
  std::sort(values.begin(), values.end());
  if (std::adjacent_find(values.begin(), values.end()) != values.end()) {
    throw UsageError(option + ": a value is there twice");
  }
}

template <class T>
void take_list(const std::string& option, const std::vector<std::string>& texts,
               const Words<T>& words, std::vector<T>& values) {
  if (texts.empty()) return;
  values.clear();
  for (const std::string& text : texts) {
    T value{};
    take(option, text, words, value);
    values.push_back(value);
  }
  require_different(option, values);
}

void take_bytes(const std::vector<std::string>& texts, std::vector<std::uint64_t>& values) {
  if (texts.empty()) return;
  values.clear();
  for (const std::string& text : texts) {
    try {
      values.push_back(parse_bytes(text));
    } catch (const std::invalid_argument& error) {
      throw UsageError(std::string("--bytes: ") + error.what());
    }
  }
  require_different("--bytes", values);
}

void fill_in(const CLI::App& app, const Texts& texts, Options& options) {
  take_list("--mode", texts.modes, modes(), options.modes);
  take_bytes(texts.bytes, options.bytes);
  take_list("--transport", texts.transports, transports(), options.transports);
  require_different("--window", options.windows);
  take_list("--contiguous", texts.contiguous, yes_and_no(), options.contiguous);
  take_list("--pinned", texts.pinned, yes_and_no(), options.pinned);
  take_list("--receive", texts.receive, receives(), options.receive);
  if (app.count("--handlers") > 0) {
    take("--handlers", texts.handlers, handlers(), options.handlers);
  }
  if (app.count("--role") > 0) take("--role", texts.role, roles(), options.role);
  if (app.count("--json") > 0) batchrpc_examples::check_writable("--json", options.json);
}

template <class T>
std::string word_of(const Words<T>& words, T value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return word;
  }
  throw std::invalid_argument("not a child's role");
}

}  // namespace

std::vector<int> Options::windows_of(Mode mode) const {
  if (!windows.empty()) return windows;
  return {mode == Mode::echo ? 1 : 8};
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
  CLI::App app(
      "Measures tensors between two processes through batchrpc, and beside each figure, in turn "
      "with it, bare sockets that move the same bytes (the floor). For inproc the floor is a "
      "memcpy.",
      "tensor_benchmark");
  Options options;
  Texts texts;
  add_options(app, options, texts);
  const bool go_on =
      batchrpc_examples::parse_command_line(app, argc, argv, [&] { fill_in(app, texts, options); });
  if (!go_on) return std::nullopt;
  return options;
}

std::vector<std::string> child_arguments(Role role, Transport transport, Handlers handlers,
                                         int line_file, int counts_file) {
  return {"--role",        word_of(roles(), role),
          "--transport",   std::string(to_string(transport)),
          "--handlers",    std::string(to_string(handlers)),
          "--line-file",   std::to_string(line_file),
          "--counts-file", std::to_string(counts_file)};
}

}  // namespace tensor_benchmark
