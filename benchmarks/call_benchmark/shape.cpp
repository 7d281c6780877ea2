#include "call_benchmark/shape.hpp"

namespace call_benchmark {

std::string_view to_string(Case which) {
  return which == Case::payload64 ? "payload64" : "scalars3";
}

std::string_view to_string(Handlers handlers) {
  return handlers == Handlers::short_ones ? "short" : "workers";
}

std::string_view to_string(Style style) { return style == Style::get ? "get" : "then"; }

std::string_view to_string(Floor floor) {
  switch (floor) {
    case Floor::blocking:
      return "blocking";
    case Floor::busy:
      return "busy";
    case Floor::frame_sized:
      break;
  }
  return "frame-sized";
}

std::string to_string(const Shape& shape) {
  const std::string each = std::to_string(shape.in_flight);
  return shape.connections == 1 ? each : std::to_string(shape.connections) + "x" + each;
}

}  // namespace call_benchmark
