#include "batchrpc/wire/signature.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "wire/values.hpp"

namespace batchrpc {
namespace signature_test {

struct Meters {
  double value;
};
struct Json;
using Object = std::map<std::string, Json>;
struct Json {
  std::variant<std::monostate, bool, double, std::string, std::vector<Json>, Object> value;
};

}  // namespace signature_test

template <>
struct Codec<signature_test::Meters> {
  using Wire = double;
  static Wire encode(const signature_test::Meters& m) { return m.value; }
  static signature_test::Meters decode(Wire&& wire) { return {wire}; }
  static constexpr std::string_view name = "geo.Meters";
};

namespace {

using namespace wire_test;
using signature_test::Json;
using signature_test::Meters;

// All of it at compile time, in both compilers.
template <class T>
constexpr std::string_view of() {
  constexpr std::string_view all = signature<void, T>();
  static_assert(all.substr(0, 5) == "void(" && all.back() == ')');
  return all.substr(5, all.size() - 6);
}

static_assert(signature<void>() == "void()");
static_assert(signature<int, int, int>() == "i32(i32,i32)");
static_assert(signature<int, int, const std::vector<std::string>&, std::optional<long>>() ==
              "i32(i32,[str],i64?)");

static_assert(of<bool>() == "bool");
static_assert(of<char>() == "i8" && of<signed char>() == "i8" && of<unsigned char>() == "u8");
static_assert(of<short>() == "i16" && of<unsigned short>() == "u16" && of<char16_t>() == "u16");
static_assert(of<int>() == "i32" && of<unsigned>() == "u32" && of<char32_t>() == "u32");
static_assert(of<long>() == "i64" && of<long long>() == "i64" && of<std::int64_t>() == "i64");
static_assert(of<unsigned long>() == "u64" && of<unsigned long long>() == "u64" &&
              of<std::size_t>() == "u64");
static_assert(of<float>() == "f32" && of<double>() == "f64");
static_assert(of<Color>() == "u8" && of<Level>() == "i32" && of<std::byte>() == "u8");
static_assert(of<std::monostate>() == "void");

static_assert(of<std::string>() == "str" && of<std::string_view>() == "str" &&
              of<const char*>() == "str");
static_assert(of<char[4]>() == "str" && of<const char (&)[4]>() == "str");
static_assert(of<Bytes>() == "bytes" && of<std::vector<std::byte>>() == "bytes");
static_assert(of<std::span<const std::byte>>() == "bytes" && of<std::span<std::byte>>() == "bytes");

static_assert(of<std::vector<std::uint8_t>>() == "[u8]" && of<std::vector<bool>>() == "[bool]");
static_assert(of<std::vector<std::vector<float>>>() == "[[f32]]" &&
              of<std::deque<int>>() == "[i32]");
static_assert(of<std::span<const float>>() == "[f32]" && of<std::array<int, 12>>() == "[i32;12]");
static_assert(of<std::set<int>>() == "set(i32)" && of<std::unordered_set<int>>() == "set(i32)");
static_assert(of<std::map<std::string, int>>() == "map(str,i32)");
static_assert(of<std::unordered_map<std::string, int>>() == "map(str,i32)");

static_assert(of<std::pair<int, bool>>() == "{i32,bool}" &&
              of<std::tuple<int, bool>>() == "{i32,bool}");
static_assert(of<std::tuple<>>() == "{}" && of<Empty>() == "{}");
static_assert(of<Point>() == "{i32,f64}");
static_assert(of<Nested>() ==
              "{{bool,i8,bool,i64,u16,bool,f32,str,[{i32,f64}],u8,bool},{},[[f32;2];3],"
              "[{bool,i8,bool,i64,u16,bool,f32,str,[{i32,f64}],u8,bool}],{i32,f64}?,[i32;3]}");
static_assert(of<Tree>() == "{i32,[^2],^1?}");
static_assert(of<Json>() == "{(void|bool|f64|str|[^3]|map(str,^3))}");

static_assert(of<std::optional<int>>() == "i32?" && of<std::unique_ptr<int>>() == "i32?");
static_assert(of<std::optional<std::optional<int>>>() == "i32??");
static_assert(of<std::variant<std::monostate, int, Point>>() == "(void|i32|{i32,f64})");

static_assert(of<std::chrono::milliseconds>() == "dur(i64,1/1000)");
static_assert(of<std::chrono::duration<int, std::milli>>() == "dur(i64,1/1000)");
static_assert(of<std::chrono::duration<float, std::ratio<60>>>() == "dur(f64,60/1)");
static_assert(of<std::chrono::system_clock::time_point>() == "time(sys,i64,1/1000000000)");
static_assert(of<std::chrono::steady_clock::time_point>() == "time(steady,i64,1/1000000000)");

// A user's type is its Wire, or its name.
static_assert(of<Celsius>() == "f64");
static_assert(of<Meters>() == "geo.Meters" && of<std::vector<Meters>>() == "[geo.Meters]");
static_assert(detail::SignatureText<true, void, Meters>::kView == "void(geo.Meters<f64>)");

// Neither const nor references count.
static_assert(signature<const std::string&, const int&, std::string&&>() == "str(i32,str)");

static_assert(same_wire<const char (&)[3], std::string>() && same_wire<long, std::int64_t>());
static_assert(!same_wire<int, long>() && !same_wire<int, double>() && !same_wire<int*, int>());

static_assert(signature_hash("") == 0xcbf29ce484222325U);
static_assert(signature_hash("i32(i32)") != signature_hash("i32(i64)"));

TEST_CASE("a signature's text ends with a NUL", "[signature]") {
  constexpr std::string_view text = signature<int, int>();
  CHECK(text.data()[text.size()] == '\0');
  CHECK(std::string(text.data()) == text);
}

TEST_CASE("a signature's hash is FNV-1a of its text", "[signature]") {
  CHECK(signature_hash("a") == 0xaf63dc4c8601ec8cU);
  CHECK(signature_hash("foobar") == 0x85944171f73967e8U);
}

}  // namespace
}  // namespace batchrpc
