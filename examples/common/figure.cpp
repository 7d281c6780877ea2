#include "common/figure.hpp"

#include <cairo-svg.h>
#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "common/ticks.hpp"

namespace batchrpc_examples {

namespace {

constexpr Color kBackground{1, 1, 1};
constexpr Color kText{0.13, 0.15, 0.18};
constexpr Color kFaintText{0.40, 0.43, 0.47};
constexpr Color kGrid{0.90, 0.91, 0.93};
constexpr Color kAxis{0.55, 0.58, 0.62};

constexpr double kMargin = 24;
constexpr double kTitleSize = 19;
constexpr double kTextSize = 13;
constexpr double kTickSize = 12;
constexpr double kLegendLine = 22;
constexpr double kPngScale = 2;

struct Range {
  double from = 0;
  double to = 1;
  std::vector<double> ticks;
  bool doubling = false;

  [[nodiscard]] double step() const { return ticks[1] - ticks[0]; }
  [[nodiscard]] double share(double value) const {
    return doubling ? std::log(value / from) / std::log(to / from) : (value - from) / (to - from);
  }
};

bool finite(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// The smallest and the largest value of a member over everything that is drawn.
template <typename Member>
std::pair<double, double> extent(const Figure& figure, Member member) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Series& series : figure.series) {
    for (const auto* points : {&series.points, &series.band_lower, &series.band_upper}) {
      for (const Point& point : *points) {
        if (!finite(point)) continue;
        low = std::min(low, point.*member);
        high = std::max(high, point.*member);
      }
    }
  }
  if (low > high) throw std::invalid_argument("a figure needs at least one finite point");
  return {low, high};
}

std::vector<double> doubling_ticks(double low, double high) {
  if (!(low > 0)) throw std::invalid_argument("a doubling axis needs values above 0");
  std::vector<double> ticks{std::exp2(std::floor(std::log2(low)))};
  while (ticks.back() < high || ticks.size() < 2)
    ticks.push_back(2 * ticks.back());
  return ticks;
}

Range range_of(const Axis& axis, double low, double high, int count) {
  low = axis.from.value_or(low);
  high = std::max(axis.to.value_or(high), low);
  Range range;
  range.doubling = axis.doubling;
  range.ticks =
      axis.doubling ? doubling_ticks(low, high) : nice_ticks(low, high, count, axis.whole_numbers);
  range.from = axis.from.value_or(range.ticks.front());
  range.to = axis.to.value_or(range.ticks.back());
  if (!(range.from < range.to)) range.to = range.ticks.back();
  return range;
}

class Drawing {
 public:
  Drawing(cairo_t* cairo, const Figure& figure) : cairo_(cairo), figure_(figure) {
    const auto [x_low, x_high] = extent(figure, &Point::x);
    auto [y_low, y_high] = extent(figure, &Point::y);
    for (const ReferenceLine& line : figure.reference_lines) {
      y_low = std::min(y_low, line.y);
      y_high = std::max(y_high, line.y);
    }
    x_ = range_of(figure.x, x_low, x_high, figure.x.whole_numbers ? 13 : 9);
    // Horizontally the points may touch both ends, so no empty strip is added up to the next tick.
    if (x_low < x_high) {
      x_.from = figure.x.from.value_or(x_low);
      x_.to = figure.x.to.value_or(x_high);
    }
    y_ = range_of(figure.y, y_low, y_high, 6);
  }

  void draw() {
    set(kBackground);
    cairo_paint(cairo_);
    cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cairo_, CAIRO_LINE_CAP_ROUND);
    draw_heading();
    draw_axes();
    cairo_save(cairo_);
    // Half of the thickest line and marker may lie outside the axes.
    cairo_rectangle(cairo_, left_ - 6, top_ - 6, right_ - left_ + 12, bottom_ - top_ + 12);
    cairo_clip(cairo_);
    for (std::size_t i = 0; i < figure_.series.size(); ++i)
      draw_band(i);
    draw_reference_lines();
    for (std::size_t i = 0; i < figure_.series.size(); ++i)
      draw_series(i);
    cairo_restore(cairo_);
  }

 private:
  enum class Align { kLeft, kCenter, kRight };

  void set(const Color& color, double opacity = 1) {
    cairo_set_source_rgba(cairo_, color.red, color.green, color.blue, opacity);
  }

  void font(double size, bool bold = false) {
    cairo_select_font_face(cairo_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo_, size);
  }

  double text_width(const std::string& text) {
    cairo_text_extents_t extents;
    cairo_text_extents(cairo_, text.c_str(), &extents);
    return extents.x_advance;
  }

  // `y` is the baseline.
  void text(const std::string& text, double x, double y, Align align = Align::kLeft) {
    if (align == Align::kCenter) x -= text_width(text) / 2;
    if (align == Align::kRight) x -= text_width(text);
    cairo_move_to(cairo_, x, y);
    cairo_show_text(cairo_, text.c_str());
  }

  void line(double x1, double y1, double x2, double y2, double width) {
    cairo_set_line_width(cairo_, width);
    cairo_move_to(cairo_, x1, y1);
    cairo_line_to(cairo_, x2, y2);
    cairo_stroke(cairo_);
  }

  [[nodiscard]] double x_of(const Point& point) const {
    return left_ + x_.share(point.x) * (right_ - left_);
  }
  [[nodiscard]] double y_of(const Point& point) const {
    return bottom_ - y_.share(point.y) * (bottom_ - top_);
  }
  [[nodiscard]] Color color_of(std::size_t index) const {
    return figure_.series[index].color.value_or(series_color(index));
  }

  // Draws title, subtitle and legend below each other, and moves `top_` below them.
  void draw_heading() {
    double y = kMargin;
    if (!figure_.title.empty()) {
      font(kTitleSize, true);
      set(kText);
      y += kTitleSize * 0.8;
      text(figure_.title, kMargin, y);
      y += 8;
    }
    if (!figure_.subtitle.empty()) {
      font(kTextSize);
      set(kFaintText);
      y += kTextSize;
      text(figure_.subtitle, kMargin, y);
      y += 6;
    }
    y = draw_legend(y);
    top_ = y + 20;
  }

  double draw_legend(double y) {
    constexpr double kSample = 26;
    constexpr double kGap = 22;
    font(kTextSize);
    double x = kMargin;
    bool any = false;
    for (std::size_t i = 0; i < figure_.series.size(); ++i) {
      const Series& series = figure_.series[i];
      if (series.name.empty()) continue;
      const double width = kSample + 7 + text_width(series.name);
      if (!any || x + width > figure_.width - kMargin) {
        x = kMargin;
        y += kLegendLine;
        any = true;
      }
      const double middle = y - kTextSize * 0.36;
      set(color_of(i), std::max(series.opacity, 0.6));
      if (series.line_width > 0) line(x, middle, x + kSample, middle, series.line_width);
      if (series.marker_size > 0) {
        marker(x + kSample / 2, middle, std::max(series.marker_size, 6.0));
      }
      set(kText);
      text(series.name, x + kSample + 7, y);
      x += width + kGap;
    }
    return y;
  }

  void draw_axes() {
    font(kTickSize);
    double widest = 0;
    for (const double tick : y_.ticks) {
      widest = std::max(widest, text_width(tick_label(tick, y_.step())));
    }
    const double y_label_room = figure_.y.label.empty() ? 0 : kTextSize + 12;
    left_ = kMargin + y_label_room + widest + 10;
    right_ = figure_.width - kMargin - 8;
    bottom_ =
        figure_.height - kMargin - kTickSize - 8 - (figure_.x.label.empty() ? 0 : kTextSize + 8);

    for (const double tick : y_.ticks) {
      if (tick < y_.from - y_.step() * 1e-9 || tick > y_.to + y_.step() * 1e-9) continue;
      const double y = y_of({0, tick});
      set(kGrid);
      line(left_, y, right_, y, 1);
      set(kFaintText);
      text(tick_label(tick, y_.step()), left_ - 10, y + kTickSize * 0.36, Align::kRight);
    }
    for (const double tick : x_.ticks) {
      if (tick < x_.from - x_.step() * 1e-9 || tick > x_.to + x_.step() * 1e-9) continue;
      const double x = x_of({tick, 0});
      set(kAxis);
      line(x, bottom_, x, bottom_ + 5, 1);
      set(kFaintText);
      text(tick_label(tick, x_.step()), x, bottom_ + 9 + kTickSize, Align::kCenter);
    }
    set(kAxis);
    line(left_, bottom_, right_, bottom_, 1);

    font(kTextSize);
    set(kText);
    text(figure_.x.label, (left_ + right_) / 2, figure_.height - kMargin + 4, Align::kCenter);
    cairo_save(cairo_);
    cairo_translate(cairo_, kMargin + kTextSize * 0.8, (top_ + bottom_) / 2);
    cairo_rotate(cairo_, -std::numbers::pi / 2);
    text(figure_.y.label, 0, 0, Align::kCenter);
    cairo_restore(cairo_);
  }

  void draw_reference_lines() {
    constexpr std::array<double, 2> kDashes{6, 5};
    for (const ReferenceLine& reference : figure_.reference_lines) {
      const double y = y_of({0, reference.y});
      set(kFaintText);
      cairo_set_dash(cairo_, kDashes.data(), 2, 0);
      line(left_, y, right_, y, 1.3);
      cairo_set_dash(cairo_, nullptr, 0, 0);
      if (reference.label.empty()) continue;
      font(kTickSize);
      // The label goes above the line if there is room, else below it. It has a veil, because lines
      // may cross it.
      const double width = text_width(reference.label);
      const bool above = y - kTickSize - 8 > top_ - 6;
      const double base = above ? y - 5 : y + kTickSize + 4;
      set(kBackground, 0.8);
      cairo_rectangle(cairo_, left_ + 4, base - kTickSize * 0.8, width + 8, kTickSize);
      cairo_fill(cairo_);
      set(kFaintText);
      text(reference.label, left_ + 8, base);
    }
  }

  void draw_band(std::size_t index) {
    const Series& series = figure_.series[index];
    if (series.band_lower.empty() || series.band_upper.empty()) return;
    cairo_new_path(cairo_);
    for (const Point& point : series.band_lower) {
      if (finite(point)) cairo_line_to(cairo_, x_of(point), y_of(point));
    }
    for (auto point = series.band_upper.rbegin(); point != series.band_upper.rend(); ++point) {
      if (finite(*point)) cairo_line_to(cairo_, x_of(*point), y_of(*point));
    }
    cairo_close_path(cairo_);
    set(color_of(index), 0.16);
    cairo_fill(cairo_);
  }

  void marker(double x, double y, double size) {
    cairo_new_sub_path(cairo_);
    cairo_arc(cairo_, x, y, size / 2, 0, 2 * std::numbers::pi);
    cairo_fill(cairo_);
  }

  void draw_series(std::size_t index) {
    const Series& series = figure_.series[index];
    set(color_of(index), series.opacity);
    if (series.line_width > 0) {
      cairo_new_path(cairo_);
      bool pen_down = false;
      for (const Point& point : series.points) {
        if (finite(point) && pen_down) cairo_line_to(cairo_, x_of(point), y_of(point));
        if (finite(point) && !pen_down) cairo_move_to(cairo_, x_of(point), y_of(point));
        pen_down = finite(point);
      }
      cairo_set_line_width(cairo_, series.line_width);
      cairo_stroke(cairo_);
    }
    if (series.marker_size > 0) {
      for (const Point& point : series.points) {
        if (finite(point)) marker(x_of(point), y_of(point), series.marker_size);
      }
    }
  }

  cairo_t* cairo_;
  const Figure& figure_;
  Range x_;
  Range y_;
  double left_ = 0;
  double right_ = 0;
  double top_ = 0;
  double bottom_ = 0;
};

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

void check(cairo_status_t status, const std::string& path) {
  if (status == CAIRO_STATUS_SUCCESS) return;
  throw std::runtime_error("cannot write " + path + ": " + cairo_status_to_string(status));
}

void draw_on(cairo_surface_t* surface, const Figure& figure, double scale,
             const std::string& path) {
  const Context context(cairo_create(surface), &cairo_destroy);
  cairo_scale(context.get(), scale, scale);
  Drawing(context.get(), figure).draw();
  check(cairo_status(context.get()), path);
}

}  // namespace

Color series_color(std::size_t index) {
  constexpr std::array<Color, 8> kColors{{{0.00, 0.45, 0.70},
                                          {0.84, 0.37, 0.00},
                                          {0.00, 0.62, 0.45},
                                          {0.80, 0.47, 0.65},
                                          {0.90, 0.62, 0.00},
                                          {0.34, 0.71, 0.91},
                                          {0.35, 0.35, 0.40},
                                          {0.80, 0.72, 0.10}}};
  return kColors[index % kColors.size()];
}

void write_svg(const Figure& figure, const std::string& path) {
  const Surface surface(cairo_svg_surface_create(path.c_str(), figure.width, figure.height),
                        &cairo_surface_destroy);
  check(cairo_surface_status(surface.get()), path);
  draw_on(surface.get(), figure, 1, path);
  cairo_surface_finish(surface.get());
  check(cairo_surface_status(surface.get()), path);
}

void write_png(const Figure& figure, const std::string& path) {
  const Surface surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(figure.width * kPngScale),
                                 static_cast<int>(figure.height * kPngScale)),
      &cairo_surface_destroy);
  draw_on(surface.get(), figure, kPngScale, path);
  check(cairo_surface_write_to_png(surface.get(), path.c_str()), path);
}

}  // namespace batchrpc_examples
