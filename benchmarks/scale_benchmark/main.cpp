// Measures how costs grow with the size of the work: peers, observers, calls in flight, objects,
// bytes. A line and a power are fitted to each, which shows growth that is faster than linear.
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "common/figure.hpp"
#include "common/machine.hpp"
#include "common/option_checks.hpp"
#include "common/process.hpp"
#include "common/sockets.hpp"
#include "scale_benchmark/growth.hpp"
#include "scale_benchmark/sections.hpp"

namespace {

using namespace scale_benchmark;
namespace examples = batchrpc_examples;

struct Options {
  std::vector<std::string> names;
  double largest = 1e12;
  int rounds = 3;
  std::string json;
  std::string figures;
};

// Measures in a separate process, so that memory left by others does not count.
Point measure_apart(const Section& section, double size) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw std::runtime_error("no pipe");
  examples::ChildProcess child([&] {
    const Point point = section.measure(size);
    return ::write(pipe[1], &point, sizeof point) == sizeof point ? 0 : 1;
  });
  ::close(pipe[1]);
  const batchrpc_benchmarks::Socket result(pipe[0]);
  Point point;
  const bool got = ::read(result.get(), &point, sizeof point) == sizeof point;
  const auto end = child.wait();
  if (!got) throw std::runtime_error(section.name + ": the measuring process " + end.describe());
  return point;
}

// The median of the rounds.
Point measure(const Section& section, double size, int rounds) {
  std::vector<Point> points;
  for (int round = 0; round < rounds; ++round)
    points.push_back(measure_apart(section, size));
  const auto middle = points.begin() + rounds / 2;
  std::nth_element(points.begin(), middle, points.end(), [](const Point& one, const Point& other) {
    return one.seconds < other.seconds;
  });
  return *middle;
}

void print_growth(const Section& section, const std::vector<Point>& points) {
  const auto time = fit(points, [](const Point& point) { return point.seconds; });
  if (!time) return;
  std::printf("  time: %.3g us + %.4g ns %s; grows with the power %.2f\n", time->fixed * 1e6,
              time->each * 1e9, section.unit.c_str(), time->power);
  const auto memory = fit(points, [](const Point& point) { return point.bytes; });
  if (!memory) return;
  std::printf("  memory: %.0f bytes %s, both sides; grows with the power %.2f\n", memory->each,
              section.unit.c_str(), memory->power);
}

nlohmann::json growth_json(const std::optional<Growth>& growth) {
  if (!growth) return nullptr;
  return {{"fixed", growth->fixed}, {"each", growth->each}, {"power", growth->power}};
}

nlohmann::json section_json(const Section& section, const std::vector<Point>& points) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Point& point : points)
    rows.push_back({{"size", point.size}, {"seconds", point.seconds}, {"bytes", point.bytes}});
  return {{"section", section.name},
          {"what", section.what},
          {"points", rows},
          {"seconds", growth_json(fit(points, [](const Point& point) { return point.seconds; }))},
          {"bytes", growth_json(fit(points, [](const Point& point) { return point.bytes; }))},
          {"machine", examples::machine_report()}};
}

void draw(const Section& section, const std::vector<Point>& points, const std::string& folder) {
  examples::Series measured{.name = "measured", .marker_size = 6};
  examples::Series line{.name = "fitted line", .line_width = 1};
  const auto time = fit(points, [](const Point& point) { return point.seconds; });
  for (const Point& point : points) {
    measured.points.push_back({point.size, point.seconds * 1e6});
    if (time)
      line.points.push_back(
          {point.size, std::max(time->fixed + time->each * point.size, 1e-9) * 1e6});
  }
  examples::Figure figure;
  figure.title = section.what;
  figure.x = {.label = section.name, .doubling = true};
  figure.y = {.label = "microseconds", .doubling = true};
  figure.series = {std::move(measured), std::move(line)};
  examples::write_svg(figure, folder + "/scale_" + section.name + ".svg");
}

int run(int argc, const char* const* argv) {
  const auto parser = examples::make_parser(
      "Measures how costs grow with the size of the work. Without a section: all.");
  CLI::App& app = *parser;
  Options options;
  std::vector<std::string> names;
  for (const Section& section : sections())
    names.push_back(section.name);
  app.add_option("section", options.names)->check(CLI::IsMember(names));
  app.add_option("--largest", options.largest,
                 "leave out sizes above this (peers, observers, calls, objects or bytes)")
      ->check(examples::between(1.0, 1e12));
  app.add_option("--rounds", options.rounds, "rounds; the median counts")
      ->check(examples::between(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.json, "file for the report");
  app.add_option("--figures", options.figures, "folder for a figure of each section");
  const bool go = examples::parse_command_line(app, argc, argv, [&] {
    if (!options.json.empty()) examples::check_writable("--json", options.json);
    if (!options.figures.empty())
      examples::check_writable("--figures", options.figures + "/scale.svg");
  });
  if (!go) return 0;

  nlohmann::json report = nlohmann::json::array();
  for (const Section& section : sections()) {
    const bool wanted =
        options.names.empty() ||
        std::find(options.names.begin(), options.names.end(), section.name) != options.names.end();
    if (!wanted) continue;
    std::printf("%s: %s\n", section.name.c_str(), section.what.c_str());
    std::vector<Point> points;
    for (const double size : section.sizes) {
      if (size > options.largest) continue;
      points.push_back(measure(section, size, options.rounds));
      const Point& point = points.back();
      std::printf("  %12.0f  %12.1f us  %10.1f ns %s", size, point.seconds * 1e6,
                  point.seconds / size * 1e9, section.unit.c_str());
      if (point.bytes > 0) std::printf("  %8.0f bytes", point.bytes / size);
      std::printf("\n");
      std::fflush(stdout);
    }
    print_growth(section, points);
    report.push_back(section_json(section, points));
    if (!options.figures.empty() && !points.empty()) draw(section, points, options.figures);
  }
  if (!options.json.empty()) examples::write_file(options.json, report.dump(2) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("scale_benchmark", &run, argc, argv);
}
