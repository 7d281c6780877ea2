#include <iostream>

#include "common/command_line.hpp"
#include "soak/conductor.hpp"
#include "soak/options.hpp"
#include "soak/participant.hpp"

namespace {

int run(int argc, const char* const* argv) {
  soak::Options options;
  if (!soak::parse_options(options, argc, argv)) return 0;
  if (options.role != soak::Role::conductor) return soak::run_participant(options);
  soak::Conductor conductor(options);
  return conductor.run() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return batchrpc_examples::run_program("soak", run, argc, argv); }
