#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace batchrpc_examples {

/// The command line is wrong; `what()` says how. Goes to standard error, with exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Makes an empty parser of a command line. It takes seconds to compile, so it is made in one
/// place. Its usage shows `name`, or the program's path without one.
std::unique_ptr<CLI::App> make_parser(const std::string& about, const std::string& name = {});

/// Parses the command line into the variables of `app`, and runs `check`, which may throw
/// UsageError too. Adds a hint to --help to the error. Returns false if only help was asked for and
/// has been printed. Throws UsageError.
bool parse_command_line(CLI::App& app, int argc, const char* const* argv,
                        const std::function<void()>& check);

/// Runs a program's `main()` and returns the result of `run`, or 1 if standard output is full or
/// closed. "--json /dev/stdout" writes the report there alone, and all other output to standard
/// error. If `run` throws, prints the reason as
/// the last line on standard error and returns 2 for a UsageError, its exit code for
/// batchrpc::Interrupted, and 1 otherwise.
int run_program(const std::string& name, int (*run)(int argc, const char* const* argv), int argc,
                const char* const* argv);

/// Checks before a long run that its results can be written to `path`, and leaves nothing there.
/// Throws a UsageError that names `option`.
void check_writable(const std::string& option, const std::string& path);

/// Writes a whole file. Throws std::runtime_error with the path.
void write_file(const std::string& path, const std::string& text);

}  // namespace batchrpc_examples
