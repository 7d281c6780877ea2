#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace batchrpc_examples {

/// The command line is wrong: `what()` says how. For standard error, and exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses the command line into what the options of `app` are bound to, and runs `check`, which may
/// throw UsageError too: where help is to be found is added to it. False when all that was asked
/// for was help, which has been printed. Throws UsageError.
bool parse_command_line(CLI::App& app, int argc, const char* const* argv,
                        const std::function<void()>& check);

/// Makes a program's `main()`: gives what `run` returns; when it throws, says why in the last line
/// on standard error and gives 2 for a UsageError, 1 for anything else; for Interrupted, its exit
/// code.
int run_program(const std::string& name, int (*run)(int argc, const char* const* argv), int argc,
                const char* const* argv);

/// Finds out before a long run whether its results can be written to `path`, without leaving
/// anything there. Throws UsageError that names `option`.
void check_writable(const std::string& option, const std::string& path);

/// Writes a whole file. Throws std::runtime_error with the path.
void write_file(const std::string& path, const std::string& text);

}  // namespace batchrpc_examples
