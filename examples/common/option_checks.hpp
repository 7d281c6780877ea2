#pragma once

#include <CLI/App.hpp>
#include <CLI/TypeTools.hpp>
#include <CLI/Validators.hpp>
#include <charconv>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>

namespace batchrpc_examples {

/// Accepts a number from `low` to `high`, but not `nan`.
template <class T>
CLI::Validator between(T low, T high) {
  std::ostringstream text;
  text << low << " to " << high;
  const std::string range = text.str();
  return CLI::Validator(
      [low, high, range](std::string& input) -> std::string {
        T value{};
        bool fits = true;
        if constexpr (std::is_integral_v<T>) {  // lexical_cast saturates, and wraps below 0
          T same{};
          fits = std::from_chars(input.data(), input.data() + input.size(), same).ec == std::errc();
        }
        fits = fits && CLI::detail::lexical_cast(input, value);
        if (fits && value >= low && value <= high) return {};
        return "'" + input + "' is not a number from " + range;
      },
      range);
}

/// Accepts one of these words and replaces it by its value.
template <class T>
CLI::Validator one_of(const std::map<std::string, T>& choices) {
  std::string words;
  for (const auto& [word, value] : choices)
    words += (words.empty() ? "" : "|") + word;
  return CLI::Validator(
      [choices, words](std::string& text) -> std::string {
        const auto choice = choices.find(text);
        if (choice == choices.end()) return "'" + text + "' is not one of " + words;
        text = std::to_string(static_cast<int>(choice->second));
        return {};
      },
      words);
}

}  // namespace batchrpc_examples
