#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/wire/codec.hpp"

/// Types to encode, random values of them, and a comparison that tells -0 from 0 and one NaN from
/// another.
namespace batchrpc::wire_test {

enum class Color : std::uint8_t { red, green, blue };
enum class Level : std::int32_t { low = -5, high = 5 };

struct Empty {};

struct Point {
  int x;
  double y;
};

/// Bits and small numbers between large ones: the layout fills holes.
struct Mixed {
  bool a;
  std::int8_t b;
  bool c;
  std::int64_t d;
  std::uint16_t e;
  bool f;
  float g;
  std::string h;
  std::vector<Point> i;
  Color j;
  bool k;
};

struct Sixteen {
  bool m0;
  std::uint8_t m1;
  std::uint16_t m2;
  std::uint32_t m3;
  std::uint64_t m4;
  std::int8_t m5;
  std::int16_t m6;
  std::int32_t m7;
  std::int64_t m8;
  float m9;
  double m10;
  char m11;
  bool m12;
  std::string m13;
  std::array<std::int16_t, 3> m14;
  Point m15;
};

struct Nested {
  Mixed mixed;
  Empty empty;
  std::array<std::array<float, 2>, 3> matrix;
  std::vector<Mixed> more;
  std::optional<Point> point;
  int c_array[3];
};

struct Tree {
  int value;
  std::vector<Tree> children;
  std::unique_ptr<Tree> next;
};

/// A type that only its codec can make.
class Celsius {
 public:
  explicit Celsius(double degrees) : degrees_(degrees) {}
  double degrees() const { return degrees_; }

 private:
  double degrees_;
};

}  // namespace batchrpc::wire_test

template <>
struct batchrpc::Codec<batchrpc::wire_test::Celsius> {
  using Wire = double;
  static Wire encode(const wire_test::Celsius& value) { return value.degrees(); }
  static wire_test::Celsius decode(Wire&& wire) { return wire_test::Celsius(wire); }
};

namespace batchrpc::wire_test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t bits() { return engine_(); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  bool coin() { return (engine_() & 1) != 0; }

 private:
  std::mt19937_64 engine_;
};

template <class T>
struct IsVariant : std::false_type {};
template <class... T>
struct IsVariant<std::variant<T...>> : std::true_type {};
template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};
template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};
template <class T>
struct IsOption : std::false_type {};
template <class T>
struct IsOption<std::optional<T>> : std::true_type {};
template <class T>
struct IsOption<std::unique_ptr<T>> : std::true_type {};
template <class T>
concept TimeSpan = requires(T value) {
  value.count();
};
template <class T>
concept TimePointLike = requires(T value) {
  value.time_since_epoch();
};
template <class T>
concept ByteSequence = std::is_same_v<T, Bytes> || std::is_same_v<T, std::vector<std::byte>>;

inline std::vector<std::byte> random_bytes(Random& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.bits());
  return bytes;
}

/// A random value; `depth` bounds the size of recursive ones.
template <class T>
T make(Random& random, int depth = 4) {
  const auto count = [&] { return depth > 0 ? random.below(4) : 0; };
  if constexpr (std::is_same_v<T, bool>) {
    return random.coin();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(make<std::underlying_type_t<T>>(random));
  } else if constexpr (std::is_arithmetic_v<T>) {
    constexpr T edges[] = {T{}, std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(),
                           T(1), std::numeric_limits<T>::min()};
    if (random.below(4) == 0) return edges[random.below(std::size(edges))];
    if constexpr (std::is_floating_point_v<T>) {
      if (random.below(6) == 0) return T(-0.0);
    }
    auto bits = static_cast<detail::UnsignedOf<sizeof(T)>>(random.bits());
    if constexpr (std::is_floating_point_v<T>) {
      // Quiet, if it is no number: Cap'n Proto's reflection converts to double and back.
      if (std::isnan(std::bit_cast<T>(bits))) {
        bits |= decltype(bits){1} << (std::numeric_limits<T>::digits - 2);
      }
    }
    return std::bit_cast<T>(bits);
  } else if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, Empty>) {
    return {};
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::string text;
    for (std::size_t n = random.below(20); n > 0; --n)
      text += static_cast<char>(random.bits());
    return text;
  } else if constexpr (std::is_same_v<T, Celsius>) {
    return Celsius(make<double>(random));
  } else if constexpr (ByteSequence<T>) {
    const auto bytes = random_bytes(random, random.below(8) == 0 ? 20000 : random.below(30));
    if constexpr (std::is_same_v<T, Bytes>)
      return Bytes::copy(bytes);
    else
      return bytes;
  } else if constexpr (TimeSpan<T>) {
    return T(make<typename T::rep>(random));
  } else if constexpr (TimePointLike<T>) {
    return T(make<typename T::duration>(random));
  } else if constexpr (IsOption<T>::value) {
    if (depth <= 0 || random.coin()) return T();
    if constexpr (std::is_copy_constructible_v<T>)
      return T(make<typename T::value_type>(random, depth - 1));
    else
      return std::make_unique<typename T::element_type>(
          make<typename T::element_type>(random, depth - 1));
  } else if constexpr (IsVariant<T>::value) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const std::size_t which = random.below(sizeof...(I));
      std::optional<T> result;
      ((which == I ? void(result.emplace(std::in_place_index<I>,
                                         make<std::variant_alternative_t<I, T>>(random, depth - 1)))
                   : void()),
       ...);
      return std::move(*result);
    }
    (std::make_index_sequence<std::variant_size_v<T>>{});
  } else if constexpr (IsTuple<T>::value) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return T{make<std::tuple_element_t<I, T>>(random, depth - 1)...};
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (IsArray<T>::value) {
    T result{};
    for (auto& element : result)
      element = make<typename T::value_type>(random, depth - 1);
    return result;
  } else if constexpr (detail::Map<T>) {
    T result;
    for (std::size_t n = count(); n > 0; --n) {
      result.emplace(make<typename T::key_type>(random, depth - 1),
                     make<typename T::mapped_type>(random, depth - 1));
    }
    return result;
  } else if constexpr (detail::Set<T>) {
    T result;
    for (std::size_t n = count(); n > 0; --n)
      result.insert(make<typename T::key_type>(random, depth - 1));
    return result;
  } else if constexpr (detail::Sequence<T>) {
    T result;
    const std::size_t n = random.below(10) == 0 && depth > 2 ? 100 : count();
    for (std::size_t i = 0; i < n; ++i)
      result.push_back(make<typename T::value_type>(random, depth - 1));
    return result;
  } else {
    T result{};
    detail::visit_members(result, [&](auto, auto&... member) {
      const auto set = [&]<class M>(M& place) {
        if constexpr (std::is_array_v<M>) {
          for (auto& element : place)
            element = make<std::remove_reference_t<decltype(element)>>(random);
        } else {
          place = make<M>(random, depth - 1);
        }
      };
      (set(member), ...);
    });
    return result;
  }
}

/// Whether two values are the same to the last bit.
template <class T>
bool identical(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    using Raw = detail::UnsignedOf<sizeof(T)>;
    return std::bit_cast<Raw>(a) == std::bit_cast<Raw>(b);
  } else if constexpr (std::is_same_v<T, Celsius>) {
    return identical(a.degrees(), b.degrees());
  } else if constexpr (TimeSpan<T>) {
    return identical(a.count(), b.count());
  } else if constexpr (std::is_array_v<T> || IsArray<T>::value || detail::Sequence<T>) {
    if (std::size(a) != std::size(b)) return false;
    auto other = std::begin(b);
    for (auto it = std::begin(a); it != std::end(a); ++it, ++other) {
      using Element = std::remove_cvref_t<decltype(*it)>;
      if constexpr (std::is_class_v<Element> || std::is_arithmetic_v<Element>) {
        if (!identical<Element>(*it, *other)) return false;
      } else if (*it != *other) {
        return false;  // the reference of a vector<bool>, an enum
      }
    }
    return true;
  } else if constexpr (detail::Map<T>) {
    if (a.size() != b.size()) return false;
    if constexpr (requires { typename T::key_compare; }) {
      return std::equal(a.begin(), a.end(), b.begin(), [](const auto& left, const auto& right) {
        return identical(left.first, right.first) && identical(left.second, right.second);
      });
    } else {
      for (const auto& [key, value] : a) {
        const auto found = b.find(key);
        if (found == b.end() || !identical(value, found->second)) return false;
      }
      return true;
    }
  } else if constexpr (IsOption<T>::value) {
    return bool(a) == bool(b) && (!a || identical(*a, *b));
  } else if constexpr (IsVariant<T>::value) {
    return a.index() == b.index() && std::visit(
                                         [&]<class V>(const V& value) {
                                           const V* const other = std::get_if<V>(&b);
                                           return other != nullptr && identical(value, *other);
                                         },
                                         a);
  } else if constexpr (IsTuple<T>::value) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (identical(std::get<I>(a), std::get<I>(b)) && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (detail::Aggregate<T> && !std::is_same_v<T, std::monostate>) {
    return detail::visit_members(a, [&](auto, const auto&... left) {
      return detail::visit_members(
          b, [&](auto, const auto&... right) { return (identical(left, right) && ...); });
    });
  } else {
    return a == b;
  }
}

/// What one gets who encodes `args` and decodes the words.
template <class... Args>
std::tuple<Args...> round_trip(const Args&... args) {
  Encoder encoder(1);
  encode_struct<Args...>(encoder, 0, args...);
  Decoder decoder(encoder.words(), encoder.payloads());
  return decode_struct<Args...>(decoder, 0);
}
template <class T>
T round_trip_one(const T& value) {
  return std::get<0>(round_trip<T>(value));
}

}  // namespace batchrpc::wire_test
