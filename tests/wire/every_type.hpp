#pragma once

#include <deque>
#include <list>
#include <unordered_set>

#include "wire/values.hpp"

/// One type of each kind, and kinds within kinds: for TEMPLATE_LIST_TEST_CASE.
namespace batchrpc::wire_test {

using EveryType = std::tuple<
    bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
    std::int64_t, std::uint64_t, long, long long, char, char16_t, float, double, Color, Level,
    std::byte, std::monostate, std::string, Bytes, std::vector<std::byte>, std::vector<bool>,
    std::vector<std::uint8_t>, std::vector<int>, std::vector<float>, std::vector<Color>,
    std::vector<std::monostate>, std::vector<std::string>, std::vector<Bytes>, std::vector<Point>,
    std::vector<Empty>, std::vector<Celsius>, std::vector<std::vector<double>>,
    std::vector<std::vector<bool>>, std::vector<std::optional<int>>,
    std::vector<std::unique_ptr<Point>>, std::vector<std::map<int, std::string>>, std::deque<int>,
    std::list<std::string>, std::array<int, 4>, std::array<bool, 11>, std::array<std::string, 2>,
    std::array<Point, 20>, std::array<std::monostate, 3>, std::array<int, 0>, std::set<int>,
    std::set<std::string>, std::unordered_set<std::uint64_t>, std::multiset<int>,
    std::map<std::string, double>, std::map<int, Mixed>,
    std::unordered_map<std::string, std::vector<float>>, std::multimap<int, int>,
    std::map<bool, std::map<int, bool>>, std::pair<int, std::string>, std::pair<bool, bool>,
    std::tuple<>, std::tuple<int>, std::tuple<bool, double, std::string, std::int8_t>,
    std::optional<bool>, std::optional<double>, std::optional<std::string>,
    std::optional<std::monostate>, std::optional<std::optional<int>>,
    std::optional<std::vector<int>>, std::unique_ptr<int>, std::unique_ptr<std::string>,
    std::variant<int>, std::variant<std::monostate>, std::variant<int, double, std::string>,
    std::variant<bool, std::int8_t, std::int64_t>, std::variant<std::int64_t, bool, std::uint16_t>,
    std::variant<std::uint8_t, std::uint16_t, std::uint32_t>,
    std::variant<std::monostate, std::uint8_t, std::uint64_t, std::uint32_t, Point>,
    std::variant<std::string, std::vector<int>>,
    std::vector<std::variant<std::monostate, int, Point>>, std::chrono::nanoseconds,
    std::chrono::duration<std::int32_t, std::milli>, std::chrono::duration<double>,
    std::chrono::system_clock::time_point, std::chrono::steady_clock::time_point, Empty, Point,
    Mixed, Sixteen, Nested, Tree, Celsius, std::optional<Celsius>>;

}  // namespace batchrpc::wire_test
