#pragma once

#include <optional>
#include <string>
#include <vector>

namespace batchrpc_examples {

struct Color {
  double red = 0;  ///< each in [0, 1]
  double green = 0;
  double blue = 0;
};

/// Colours for the series of a figure, which the colour-blind can tell apart (Okabe and Ito 2008).
/// Goes round after eight.
Color series_color(std::size_t index);

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name{};  ///< in the legend; a series without a name is not there
  std::vector<Point> points{};
  std::optional<Color> color{};  ///< by default that of its place among the series
  double line_width = 2;         ///< 0: no line
  double marker_size = 0;        ///< diameter; 0: no markers
  double opacity = 1;

  /// A band behind the line, as between two percentiles: as many points as bounds, each
  /// {x, lower} and {x, upper}. Empty: none.
  std::vector<Point> band_lower{};
  std::vector<Point> band_upper{};
};

/// A dashed line across the whole figure, labelled at its end.
struct ReferenceLine {
  double y = 0;
  std::string label{};
};

struct Axis {
  std::string label{};
  std::optional<double> from{};  ///< by default what the points need, rounded to a tick
  std::optional<double> to{};
  bool whole_numbers = false;  ///< ticks at whole numbers only
  bool doubling = false;  ///< logarithmic, of values above 0: each tick is twice the one before
};

/// A line chart. Points that are not finite interrupt their line.
struct Figure {
  std::string title{};
  std::string subtitle{};  ///< smaller, below the title; may be empty
  Axis x{};
  Axis y{.from = 0};
  std::vector<Series> series{};
  std::vector<ReferenceLine> reference_lines{};
  int width = 800;  ///< in SVG units; a PNG has twice as many pixels
  int height = 500;
};

/// Both throw `std::invalid_argument` when there is nothing to draw (no finite point), and
/// `std::runtime_error`, with the path, when the file cannot be written. No thread safety is
/// needed: each call is by itself.
void write_svg(const Figure& figure, const std::string& path);
void write_png(const Figure& figure, const std::string& path);

}  // namespace batchrpc_examples
