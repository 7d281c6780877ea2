#include "tensor_benchmark/report.hpp"

#include <torch/version.h>

#include <algorithm>
#include <array>
#include <batchrpc/base/version.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "common/machine.hpp"
#include "common/statistics.hpp"

namespace tensor_benchmark {

namespace {

using batchrpc_examples::median;
using batchrpc_examples::percentiles;

constexpr auto kLine =
    "%-9s %-4s %5s %6s %-10s %-4s %-14s %7s %5s %9s %9s %11s %6s %12s %6s %6s %6s\n";

template <class... Values>
std::string format(const char* pattern, const Values&... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string line(const std::array<std::string, 17>& columns) {
  return std::apply([](const auto&... column) { return format(kLine, column.c_str()...); },
                    columns);
}

std::string text(std::string_view view) { return std::string(view); }

/// Half the range of the rounds, in percent of their median.
std::string spread(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return format("%.0f %%", (*most - *least) / 2 / median(values) * 100);
}

std::string sides(const char* pattern, double client, double server, bool one_process) {
  const std::string first = format(pattern, client);
  return one_process ? first : first + "+" + format(pattern, server);
}

const Row* floor_of(const Group& group) {
  return !group.empty() && group.front().floor ? &group.front() : nullptr;
}

nlohmann::json machine_json() {
  nlohmann::json machine = batchrpc_examples::machine_report();
  machine["compiler"] = __VERSION__;
  machine["batchrpc"] = batchrpc::version();
  machine["libtorch"] = TORCH_VERSION;
  return machine;
}

nlohmann::json to_json(const Row& row, const Row* floor, const Options& options) {
  const auto us = percentiles(row.us, {50, 99});
  const CpuTime cpu = median_cpu(row);
  const Sides pages = median_pages(row);
  nlohmann::json entry = {
      {"system", row.floor ? "floor" : "batchrpc"},
      {"transport", to_string(row.which.transport)},
      {"mode", to_string(row.which.mode)},
      {"bytes", row.which.bytes},
      {"window", row.which.window},
      {"contiguous", row.which.contiguous},
      {"receive", to_string(row.receive)},
      {"pinned", row.which.pinned},
      {"handlers", nullptr},
      {"gb_per_s", median(row.gb_per_s)},
      {"rounds", row.gb_per_s},
      {"p50_us", us[0]},
      {"p99_us", us[1]},
      {"calls", row.us.size()},
      {"cpu_s_per_gb", {{"client", cpu.client}, {"server", cpu.server}}},
      {"fresh_pages", {{"client", pages.client}, {"server", pages.server}}},
      {"fresh_pages_per_call", pages.sum()},
      {"copies", nullptr},
      {"to_floor", nullptr},
      {"seconds", options.seconds},
      {"machine", machine_json()},
  };
  if (!row.floor) entry["handlers"] = to_string(options.handlers);
  if (row.copies) {
    entry["copies"] = {{"client", row.copies->client}, {"server", row.copies->server}};
  }
  if (floor != nullptr && floor != &row) {
    const Ratio of_floor = ratio(row, *floor);
    entry["to_floor"] = {
        {"gb_per_s", of_floor.gb_per_s}, {"p50", of_floor.p50}, {"cpu", of_floor.cpu}};
  }
  return entry;
}

}  // namespace

void print_head(std::ostream& out, const Options& options) {
  const nlohmann::json machine = machine_json();
  out << "batchrpc " << batchrpc::version() << ", LibTorch " << TORCH_VERSION << ", "
      << machine["cpus"].get<int>() << " CPUs (" << machine["cpu"].get<std::string>() << "), "
      << machine["system"].get<std::string>() << "; medians of " << options.rounds << " rounds of "
      << options.seconds << " s; handlers: " << to_string(options.handlers)
      << "\nGB/s: 10^9 payload bytes per second, for an echo both ways. p50, p99: per call, over "
         "all calls of all rounds.\n"
         "CPU s/GB, fresh pages and copies: client + server, for inproc together; copies: of the "
         "payload in user space, per call; fresh pages: per call.\n"
         "floor: bare sockets that receive into a reused buffer; for inproc a memcpy each way.\n"
         "x GB/s, x p50, x CPU: ratio to the floor, median of the ratios of each round.\n\n"
      << line({"transport", "mode", "bytes", "window", "tensor", "CPUs", "system", "GB/s", "+-",
               "p50 us", "p99 us", "CPU s/GB", "copies", "fresh pages", "x GB/s", "x p50", "x CPU"})
      << std::flush;
}

void print_group(std::ostream& out, const Group& group) {
  const Row* const floor = floor_of(group);
  for (const Row& row : group) {
    const bool one_process = row.which.transport == Transport::inproc;
    const auto us = percentiles(row.us, {50, 99});
    const CpuTime cpu = median_cpu(row);
    const Sides pages = median_pages(row);
    std::array<std::string, 3> ratios;
    if (floor != nullptr && floor != &row) {
      const Ratio of_floor = ratio(row, *floor);
      ratios = {format("%.2f", of_floor.gb_per_s), format("%.2f", of_floor.p50),
                format("%.2f", of_floor.cpu)};
    }
    out << line(
        {text(to_string(row.which.transport)), text(to_string(row.which.mode)),
         bytes_text(row.which.bytes), std::to_string(row.which.window),
         row.which.contiguous ? "dense" : "transposed", row.which.pinned ? "one" : "free",
         row.floor ? "floor" : "batchrpc " + text(to_string(row.receive)),
         format("%.2f", median(row.gb_per_s)), spread(row.gb_per_s), format("%.1f", us[0]),
         format("%.1f", us[1]), sides("%.2f", cpu.client, cpu.server, one_process),
         row.copies ? sides("%.1f", row.copies->client, row.copies->server, one_process) : "?",
         sides("%.0f", pages.client, pages.server, one_process), ratios[0], ratios[1], ratios[2]});
  }
  out << std::endl;
}

nlohmann::json to_json(const Group& group, const Options& options) {
  nlohmann::json entries = nlohmann::json::array();
  for (const Row& row : group)
    entries.push_back(to_json(row, floor_of(group), options));
  return entries;
}

}  // namespace tensor_benchmark
