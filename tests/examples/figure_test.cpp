#include "common/figure.hpp"

#include <cairo.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {
namespace figure_test {

// A path that nothing is at, and nothing will be after the test.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& extension)
      : path_(std::filesystem::temp_directory_path() /
              ("batchrpc_figure_test_" + std::to_string(::getpid()) + extension)) {}
  ~TemporaryPath() { std::filesystem::remove(path_); }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  [[nodiscard]] std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint32_t> pixels;  // 0xRRGGBB

  [[nodiscard]] std::uint32_t at(int x, int y) const {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

Picture drawn(const Figure& figure) {
  const TemporaryPath path(".png");
  write_png(figure, path.string());
  const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
      cairo_image_surface_create_from_png(path.string().c_str()), &cairo_surface_destroy);
  REQUIRE(cairo_surface_status(surface.get()) == CAIRO_STATUS_SUCCESS);
  Picture picture;
  picture.width = cairo_image_surface_get_width(surface.get());
  picture.height = cairo_image_surface_get_height(surface.get());
  const auto* data = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  for (int y = 0; y < picture.height; ++y) {
    const auto* row = reinterpret_cast<const std::uint32_t*>(data + std::ptrdiff_t{y} * stride);
    for (int x = 0; x < picture.width; ++x)
      picture.pixels.push_back(row[x] & 0xFFFFFF);
  }
  return picture;
}

// Right of the y axis and above the x axis, so without the legend and the labels.
int count_in_plot(const Picture& picture, std::uint32_t color) {
  int count = 0;
  for (int y = picture.height / 3; y < picture.height * 8 / 10; ++y) {
    for (int x = picture.width / 5; x < picture.width; ++x)
      count += picture.at(x, y) == color;
  }
  return count;
}

Figure two_lines() {
  Figure figure;
  figure.title = "A title";
  figure.x.label = "observers";
  figure.y.label = "seconds";
  figure.series = {{.name = "red", .points = {{1, 1}, {2, 2}, {3, 5}}, .color = Color{1, 0, 0}},
                   {.name = "blue", .points = {{1, 3}, {2, 3}, {3, 3}}, .color = Color{0, 0, 1}}};
  return figure;
}

TEST_CASE("a figure is drawn as a PNG of twice its size") {
  const Picture picture = drawn(two_lines());
  CHECK(picture.width == 1600);
  CHECK(picture.height == 1000);
  CHECK(picture.at(0, 0) == 0xFFFFFF);
  CHECK(count_in_plot(picture, 0xFF0000) > 1000);
  CHECK(count_in_plot(picture, 0x0000FF) > 1000);
}

TEST_CASE("a figure is drawn as an SVG") {
  const TemporaryPath path(".svg");
  write_svg(two_lines(), path.string());
  std::ifstream file(path.string());
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find("<svg") != std::string::npos);
  CHECK(text.str().find("viewBox=\"0 0 800 500\"") != std::string::npos);
  CHECK(text.str().find("</svg>") != std::string::npos);
}

TEST_CASE("points that are not finite interrupt a line") {
  Figure figure = two_lines();
  const int whole = count_in_plot(drawn(figure), 0x0000FF);
  figure.series[1].points[1].y = NAN;
  CHECK(count_in_plot(drawn(figure), 0x0000FF) == 0);
  figure.series[1].points = {{1, 3}, {2, 3}, {2, INFINITY}, {3, 3}};
  const int half = count_in_plot(drawn(figure), 0x0000FF);
  CHECK(half > 0);
  CHECK(half < whole * 2 / 3);
}

TEST_CASE("bands and reference lines are drawn") {
  Figure figure = two_lines();
  const Picture without = drawn(figure);
  figure.series[1].band_lower = {{1, 2}, {2, 2}, {3, 2}};
  figure.series[1].band_upper = {{1, 4}, {2, 4}, {3, 4}};
  const Picture band = drawn(figure);
  CHECK(count_in_plot(band, 0xFFFFFF) < count_in_plot(without, 0xFFFFFF) * 8 / 10);
  figure = two_lines();
  figure.reference_lines = {{3.5, "a limit"}};
  CHECK(count_in_plot(drawn(figure), 0xFFFFFF) < count_in_plot(without, 0xFFFFFF) - 500);
}

TEST_CASE("a single point, and any number of series, make a figure") {
  Figure figure;
  figure.series = {{.name = "", .points = {{3, 1e7}}, .marker_size = 8}};
  CHECK(drawn(figure).width == 1600);
  for (int i = 0; i < 30; ++i) {
    figure.series.push_back({.name = "number " + std::to_string(i), .points = {{1, 1}, {2, 3}}});
  }
  CHECK(drawn(figure).width == 1600);
}

TEST_CASE("on an axis that doubles, values of one ratio are equally far apart") {
  Figure figure{.x = {.doubling = true}};
  figure.series = {{.points = {{1, 1}, {8, 1}, {64, 1}}, .line_width = 0, .marker_size = 8}};
  const Picture doubling = drawn(figure);
  figure.x.doubling = false;
  figure.series[0].points[1].x = 32.5;  // the middle of an axis that does not
  CHECK(count_in_plot(doubling, 0x0073B2) == count_in_plot(drawn(figure), 0x0073B2));

  figure.x.doubling = true;
  figure.series[0].points[0].x = 0;
  CHECK_THROWS_AS(drawn(figure), std::invalid_argument);
}

TEST_CASE("a figure of nothing, and one that cannot be written, are errors") {
  Figure nothing;
  nothing.series = {{.name = "nothing", .points = {{0, NAN}}}};
  const TemporaryPath path(".none");
  CHECK_THROWS_AS(write_svg(nothing, path.string()), std::invalid_argument);
  CHECK_THROWS_AS(write_png(nothing, path.string()), std::invalid_argument);
  CHECK_THROWS_AS(write_svg(two_lines(), "/no/such/folder/figure.svg"), std::runtime_error);
  CHECK_THROWS_AS(write_png(two_lines(), "/no/such/folder/figure.png"), std::runtime_error);
}

}  // namespace figure_test
}  // namespace batchrpc_examples
