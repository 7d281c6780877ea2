#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <map>
#include <sstream>
#include <string>

namespace batchrpc_examples {

/// Takes a number from `low` to `high`.
template <class T>
CLI::Validator between(T low, T high) {
  std::ostringstream range;
  range << low << " to " << high;
  return CLI::Range(low, high).description(range.str());
}

/// Takes one of these words, for the value that it stands for.
template <class T>
CLI::Validator one_of(const std::map<std::string, T>& choices) {
  std::string words;
  for (const auto& [word, value] : choices)
    words += (words.empty() ? "" : "|") + word;
  return CLI::Validator(
      [choices, words](std::string& text) -> std::string {
        const auto choice = choices.find(text);
        if (choice == choices.end()) return "'" + text + "' is none of " + words;
        text = std::to_string(static_cast<int>(choice->second));
        return {};
      },
      words);
}

}  // namespace batchrpc_examples
