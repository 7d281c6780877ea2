#include "tensor_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <algorithm>
#include <map>
#include <stdexcept>

#include "common/command_line.hpp"
#include "common/lists.hpp"
#include "common/option_checks.hpp"

namespace tensor_benchmark {

namespace {

using batchrpc_examples::between;
using batchrpc_examples::UsageError;

constexpr int kMostWindow = 64;

/// The words of an option and their values.
template <class T>
using Words = std::map<std::string, T>;

/// Maps the values' names to the values.
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
  static const auto words =
      by_name({Transport::tcp, Transport::tls, Transport::unix_socket, Transport::inproc});
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

/// The texts of options whose values are words, lists, or numbers with a unit.
struct Texts {
  std::optional<std::string> modes, bytes, transports, windows, contiguous, pinned, receive,
      handlers, role;
};

void add_options(CLI::App& app, Options& options, Texts& texts) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("--mode", texts.modes, "echo,push (both)");
  app.add_option("--bytes", texts.bytes,
                 "Tensor sizes from 512 to 1G, multiples of 8 (1K,64K,1M,16M,64M,256M)");
  app.add_option("--transport", texts.transports, "tcp,tls,unix,inproc (all)");
  app.add_option("--window", texts.windows, "Calls in flight (1 for echoes, 8 for pushes)");
  app.add_option("--contiguous", texts.contiguous,
                 "yes,no: a dense tensor, a transposed view (both)");
  app.add_option("--pinned", texts.pinned, "yes,no: both processes on one CPU, free (no)");
  app.add_option("--receive", texts.receive,
                 "fresh,into: echoes that create a tensor each, or use call_into (both)");
  app.add_option("--handlers", texts.handlers,
                 "workers|short: where the server's functions run (workers)");
  app.add_option("--seconds", options.seconds, "Seconds per sample; at least one window of calls")
      ->check(between(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Samples per figure")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures to this file");
  app.add_flag("!--no-floor", options.floor, "Measure batchrpc alone");
  // For children only.
  app.add_option("--role", texts.role)->group("");
  app.add_option("--line-file", options.line_file)->group("");
  app.add_option("--counts-file", options.counts_file)->group("");
}

/// Parses each part of a list with `parse`. Rejects duplicates.
template <class T, class Parse>
void take_list(const std::string& option, const std::optional<std::string>& text,
               std::vector<T>& values, const Parse& parse) {
  if (!text) return;
  values.clear();
  for (const std::string_view part : batchrpc_benchmarks::split(*text)) {
    const T value = parse(part);
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      throw UsageError(option + ": '" + std::string(part) + "' is given twice");
    }
    values.push_back(value);
  }
}

/// Finds the value of an option's word.
template <class T>
auto meaning_of(const std::string& option, const Words<T>& words) {
  return [&, option](std::string_view text) -> T {
    const auto at = words.find(std::string(text));
    if (at != words.end()) return at->second;
    std::string all;
    for (const auto& [word, meaning] : words)
      all += (all.empty() ? "" : "|") + word;
    throw UsageError(option + ": '" + std::string(text) + "' is not one of " + all);
  };
}

template <class T>
void take_words(const std::string& option, const std::optional<std::string>& text,
                const Words<T>& words, std::vector<T>& values) {
  take_list(option, text, values, meaning_of(option, words));
}

template <class T>
void take_word(const std::string& option, const std::optional<std::string>& text,
               const Words<T>& words, T& value) {
  if (text) value = meaning_of(option, words)(*text);
}

std::uint64_t take_bytes(std::string_view text) {
  try {
    return parse_bytes(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("--bytes: ") + error.what());
  }
}

int take_window(std::string_view text) {
  std::string input(text);
  const std::string wrong = between(1, kMostWindow)(input);
  if (!wrong.empty()) throw UsageError("--window: " + wrong);
  return std::stoi(input);
}

void fill_in(const CLI::App& app, const Texts& texts, Options& options) {
  take_words("--mode", texts.modes, modes(), options.modes);
  take_list("--bytes", texts.bytes, options.bytes, &take_bytes);
  take_words("--transport", texts.transports, transports(), options.transports);
  take_list("--window", texts.windows, options.windows, &take_window);
  take_words("--contiguous", texts.contiguous, yes_and_no(), options.contiguous);
  take_words("--pinned", texts.pinned, yes_and_no(), options.pinned);
  take_words("--receive", texts.receive, receives(), options.receive);
  take_word("--handlers", texts.handlers, handlers(), options.handlers);
  take_word("--role", texts.role, roles(), options.role);
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
  const auto parser = batchrpc_examples::make_parser(
      "Measures tensor transfers between two processes through batchrpc. In turn with each figure "
      "it measures bare sockets that move the same bytes (the floor). For inproc the floor is a "
      "memcpy.",
      "tensor_benchmark");
  CLI::App& app = *parser;
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
