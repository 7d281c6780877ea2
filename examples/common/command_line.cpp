#include "common/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "batchrpc/base/error.hpp"

namespace batchrpc_examples {

std::unique_ptr<CLI::App> make_parser(const std::string& about, const std::string& name) {
  return std::make_unique<CLI::App>(about, name);
}

bool parse_command_line(CLI::App& app, int argc, const char* const* argv,
                        const std::function<void()>& check) {
  const std::string see_help = "; see --help";
  try {
    app.parse(argc, argv);
    check();
    return true;
  } catch (const CLI::Success& asked) {  // --help and similar options
    app.exit(asked);
    return false;
  } catch (const CLI::Error& error) {
    throw UsageError(error.what() + see_help);
  } catch (const UsageError& error) {
    throw UsageError(error.what() + see_help);
  }
}

namespace {

// Where "--json /dev/stdout" is among the arguments, a report is to be alone on standard output.
// Sends what else is printed to standard error, and replaces the path.
std::vector<std::string> with_report_alone(int argc, const char* const* argv) {
  constexpr std::string_view kOption = "--json";
  constexpr std::string_view kPath = "/dev/stdout";
  constexpr std::string_view kBoth = "--json=/dev/stdout";
  std::vector<std::string> arguments(argv, argv + argc);
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const bool is_value = arguments[i] == kPath && arguments[i - 1] == kOption;
    if (!is_value && arguments[i] != kBoth) continue;
    const int report = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (report < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) break;
    arguments[i].replace(arguments[i].size() - kPath.size(), kPath.size(),
                         "/dev/fd/" + std::to_string(report));
  }
  return arguments;
}

int run_with(const std::vector<std::string>& arguments,
             int (*run)(int argc, const char* const* argv)) {
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(argument.c_str());
  pointers.push_back(nullptr);
  const int code = run(static_cast<int>(arguments.size()), pointers.data());
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout)
    throw std::runtime_error("standard output is full or closed, so output is missing");
  return code;
}

}  // namespace

int run_program(const std::string& name, int (*run)(int argc, const char* const* argv), int argc,
                const char* const* argv) {
  try {
    return run_with(with_report_alone(argc, argv), run);
  } catch (const UsageError& error) {
    std::cerr << name << ": " << error.what() << std::endl;
    return 2;
  } catch (const batchrpc::InvalidArgument& error) {  // for example of an address
    std::cerr << name << ": " << error.what() << std::endl;
    return 2;
  } catch (const batchrpc::Interrupted& interrupted) {
    std::cerr << name << ": interrupted" << std::endl;
    return interrupted.exit_code();
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << std::endl;
    return 1;
  }
}

void check_writable(const std::string& option, const std::string& path) {
  const bool was_there = std::filesystem::exists(path);
  errno = 0;
  if (!std::ofstream(path, std::ios::app)) {
    throw UsageError(option + ": cannot write " + path + ": " + std::strerror(errno));
  }
  if (!was_there) std::filesystem::remove(path);
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace batchrpc_examples
