#include "common/command_line.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "batchrpc/base/error.hpp"
#include "common/interrupt.hpp"

namespace batchrpc_examples {

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

int run_program(const std::string& name, int (*run)(int argc, const char* const* argv), int argc,
                const char* const* argv) {
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    std::cerr << name << ": " << error.what() << std::endl;
    return 2;
  } catch (const batchrpc::InvalidArgument& error) {  // for example of an address
    std::cerr << name << ": " << error.what() << std::endl;
    return 2;
  } catch (const Interrupted& interrupted) {
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
