#include "env/action_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <locale>
#include <sstream>

#include "batchrpc/base/error.hpp"

namespace batchrpc::env {
namespace {

template <class T>
T element_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Returns the value of an action that was clamped to the bound: 0.4F is above 0.4.
template <class T>
T as_action(double bound) {
  constexpr double kMost = std::numeric_limits<T>::max();
  return static_cast<T>(std::isinf(bound) ? bound : std::clamp(bound, -kMost, kMost));
}

template <class T>
auto in_range_of(const EnvSpec& spec) {
  return [low = as_action<T>(spec.action_low), high = as_action<T>(spec.action_high)](T value) {
    return value >= low && value <= high;
  };
}

template <class T, class Allowed>
void require_each(const EnvSpec& spec, std::span<const std::byte> actions,
                  const std::function<bool(std::size_t)>& skip, const Allowed& allowed) {
  const std::size_t elements = spec.action.elements();
  const std::size_t count = actions.size() / sizeof(T) / elements;
  for (std::size_t i = 0; i < count; ++i) {
    if (skip && skip(i)) continue;
    for (std::size_t j = 0; j < elements; ++j) {
      const T value = element_at<T>(actions, i * elements + j);
      if (allowed(value)) continue;
      std::ostringstream text;
      text.imbue(std::locale::classic());
      text.precision(std::numeric_limits<T>::max_digits10);
      text << "action " << i << " of " << count << " is " << value << ", but must be from ";
      if (spec.actions > 0) {
        text << "0 to " << spec.actions - 1;
      } else {
        text << spec.action_low << " to " << spec.action_high;
      }
      throw InvalidArgument(text.str());
    }
  }
}

}  // namespace

void require_allowed(const EnvSpec& spec, std::span<const std::byte> actions,
                     const std::function<bool(std::size_t)>& skip) {
  const auto discrete = [&](auto value) { return value >= 0 && value < spec.actions; };
  switch (spec.action.type) {
    case ElementType::int32:
      return require_each<std::int32_t>(spec, actions, skip, discrete);
    case ElementType::int64:
      return require_each<std::int64_t>(spec, actions, skip, discrete);
    case ElementType::float32:
      return require_each<float>(spec, actions, skip, in_range_of<float>(spec));
    case ElementType::float64:
      return require_each<double>(spec, actions, skip, in_range_of<double>(spec));
    case ElementType::boolean:
    case ElementType::uint8:
      break;
  }
  throw InvalidArgument("actions of " + to_string(spec.action) + " are not supported");
}

}  // namespace batchrpc::env
