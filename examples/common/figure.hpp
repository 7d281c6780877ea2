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

/// The colours of a figure's series, which colour-blind readers can tell apart (Okabe and Ito
/// 2008). Repeats after eight.
Color series_color(std::size_t index);

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name{};  ///< name in the legend; empty: not in the legend
  std::vector<Point> points{};
  std::optional<Color> color{};  ///< by default chosen by the series' position
  double line_width = 2;         ///< 0: no line
  double marker_size = 0;        ///< diameter; 0: no markers
  double opacity = 1;

  /// A band behind the line, for example between two percentiles. Both bounds need the same number
  /// of points, {x, lower} and {x, upper}. Empty: no band.
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
  std::optional<double> from{};  ///< by default the smallest point, rounded to a tick
  std::optional<double> to{};
  bool whole_numbers = false;  ///< ticks only at whole numbers
  bool doubling = false;  ///< logarithmic, for values above 0: each tick is twice the one before
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

/// Write the figure to a file. Throw `std::invalid_argument` if no point is finite, and
/// `std::runtime_error` with the path if the file cannot be written. Calls are independent of each
/// other.
void write_svg(const Figure& figure, const std::string& path);
void write_png(const Figure& figure, const std::string& path);

}  // namespace batchrpc_examples
