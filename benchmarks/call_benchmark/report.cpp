#include "call_benchmark/report.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <batchrpc/base/version.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "common/statistics.hpp"

namespace call_benchmark {

namespace {

using batchrpc_examples::median;
using batchrpc_examples::percentiles;

constexpr auto kLine = "%-9s %-9s %-6s %-4s %-19s %7s %5s %8s %8s %8s %12s %6s %6s %6s\n";

template <class... Values>
std::string format(const char* pattern, const Values&... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string system_name(const Row& row) {
  if (!row.floor) return "batchrpc";
  switch (*row.floor) {
    case Floor::blocking:
      return "floor";
    case Floor::busy:
      return "floor_busy";
    case Floor::frame_sized:
      break;
  }
  return "floor_frame_sized";
}

std::string label(const Row& row) {
  if (!row.floor) {
    std::string text =
        std::string(to_string(row.handlers)) + ", " + std::string(to_string(row.style));
    if (row.profiler == 1) text += ", profiled";
    if (row.profiler > 1) text += ", profiled 1 in " + std::to_string(row.profiler);
    return text;
  }
  std::string text = "floor";
  if (row.floor == Floor::busy) text += ", busy-polled";
  if (row.floor == Floor::frame_sized) {
    text += ", " + std::to_string(row.bytes.request) + "/" + std::to_string(row.bytes.reply) + " B";
  }
  return text;
}

std::string rate(double calls_per_s) {
  if (calls_per_s >= 1e6) return format("%.2f M", calls_per_s / 1e6);
  if (calls_per_s >= 1e4) return format("%.0f k", calls_per_s / 1e3);
  return format("%.0f", calls_per_s);
}

/// Half the range of the rounds, in percent of their median.
std::string spread(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return format("%.0f %%", (*most - *least) / 2 / median(values) * 100);
}

std::string cpu(const CpuTime& us) {
  if (us.server == 0) return format("%.2f", us.client);  // both sides
  return format("%.2f+%.2f", us.client, us.server);
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname name{};
  ::uname(&name);
  return std::string(name.sysname) + " " + name.release;
}

std::string library_version() {
  return std::to_string(BATCHRPC_VERSION_MAJOR) + "." + std::to_string(BATCHRPC_VERSION_MINOR) +
         "." + std::to_string(BATCHRPC_VERSION_PATCH);
}

}  // namespace

void print_head(std::ostream& out, const Options& options) {
  out << "batchrpc " << library_version() << ", " << std::thread::hardware_concurrency()
      << " CPUs (" << cpu_model() << "), " << kernel() << "; medians of " << options.rounds
      << " rounds of " << options.seconds << " s\n"
      << "in flight: calls, or connections x calls each. CPUs: one: all threads of both sides on "
         "one CPU.\n"
      << "floor: a plain epoll loop, 64-byte messages. CPU us: of a call, client + server.\n"
      << "x rate, x rtt, x CPU: calls/s, round trip p50 and CPU time / the floor's, median of the "
         "ratios of each round.\n\n"
      << format(kLine, "transport", "case", "flight", "CPUs", "system", "calls/s", "+-", "p50 us",
                "p90 us", "p99 us", "CPU us", "x rate", "x rtt", "x CPU");
}

void print_group(std::ostream& out, const Group& group) {
  const Row& floor = group.front();
  for (const Row& row : group) {
    const auto rtt = percentiles(row.rtt_us, {50, 90, 99});
    const Ratio of_floor = ratio(row, floor);
    const bool is_floor = &row == &floor;
    out << format(kLine, std::string(to_string(row.transport)).c_str(),
                  std::string(to_string(row.which)).c_str(), to_string(row.shape).c_str(),
                  row.pinned ? "one" : "free", label(row).c_str(),
                  rate(median(row.calls_per_s)).c_str(), spread(row.calls_per_s).c_str(),
                  format("%.1f", rtt[0]).c_str(), format("%.1f", rtt[1]).c_str(),
                  format("%.1f", rtt[2]).c_str(), cpu(median_cpu(row)).c_str(),
                  is_floor ? "" : format("%.2f", of_floor.calls_per_s).c_str(),
                  is_floor ? "" : format("%.2f", of_floor.rtt).c_str(),
                  is_floor ? "" : format("%.2f", of_floor.cpu).c_str());
  }
  out << std::endl;
}

nlohmann::json to_json(const Row& row, const Row& floor, const Options& options) {
  const auto rtt = percentiles(row.rtt_us, {50, 90, 99});
  const CpuTime cpu_us = median_cpu(row);
  nlohmann::json entry = {
      {"system", system_name(row)},
      {"transport", to_string(row.transport)},
      {"case", to_string(row.which)},
      {"in_flight", row.shape.in_flight},
      {"connections", row.shape.connections},
      {"pinned", row.pinned},
      {"handlers", nullptr},
      {"style", nullptr},
      {"calls_per_s", median(row.calls_per_s)},
      {"rtt_us", {{"p50", rtt[0]}, {"p90", rtt[1]}, {"p99", rtt[2]}}},
      {"cpu_us", {{"client", cpu_us.client}, {"server", cpu_us.server}}},
      {"calls_per_s_of_rounds", row.calls_per_s},
      {"rtt_us_p50_of_rounds", row.p50_us},
      {"timed_calls", row.rtt_us.size()},
      {"request_bytes", row.bytes.request},
      {"reply_bytes", row.bytes.reply},
      {"rounds", options.rounds},
      {"seconds", options.seconds},
      {"busy_poll_us", options.busy_poll},
      {"to_floor", nullptr},
      {"machine", machine()},
  };
  if (!row.floor) {
    entry["handlers"] = to_string(row.handlers);
    entry["style"] = to_string(row.style);
    if (row.profiler > 0) entry["profiler"] = row.profiler;
  }
  if (&row != &floor) {
    const Ratio of_floor = ratio(row, floor);
    entry["to_floor"] = {
        {"calls_per_s", of_floor.calls_per_s}, {"rtt", of_floor.rtt}, {"cpu", of_floor.cpu}};
  }
  return entry;
}

nlohmann::json machine() {
  return {{"cpu", cpu_model()},
          {"cpus", std::thread::hardware_concurrency()},
          {"kernel", kernel()},
          {"compiler", __VERSION__},
          {"batchrpc", library_version()}};
}

void write_json(const std::string& path, const nlohmann::json& entries) {
  std::ofstream file(path);
  file << entries.dump(1) << "\n";
  file.close();
  if (!file) throw std::runtime_error("'" + path + "' cannot be written");
}

}  // namespace call_benchmark
