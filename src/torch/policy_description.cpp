#include "torch/policy_description.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <system_error>

#include "batchrpc/base/error.hpp"
#include "torch/tensor_types.hpp"

namespace batchrpc::detail {
namespace {

constexpr const char* kFormat = "1";
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;

/// Reads the words of one line. Its InvalidArgument shows the line.
class Line {
 public:
  Line(const std::string& path, const std::string& text) : path_(path), text_(text), in_(text) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgument(path_ + " contains the description '" + text_ + "': " + why +
                          "; export it again with scripts/export_policy.py");
  }
  std::string word(const char* what) {
    std::string word;
    if (!(in_ >> word)) refuse(std::string(what) + " is missing");
    return word;
  }
  std::int64_t number(const std::string& text, std::int64_t from, std::int64_t to) const {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stop != end || value < from || value > to) {
      refuse("'" + text + "' is not a number from " + std::to_string(from) + " to " +
             std::to_string(to));
    }
    return value;
  }
  RowForm form() {
    const std::string type = word("a type");
    const auto* const known =
        std::find_if(kTensorTypes.begin(), kTensorTypes.end(),
                     [&](const TensorType& each) { return !type.empty() && each.name == type; });
    if (known == kTensorTypes.end() || known->scalar == c10::ScalarType::Undefined) {
      refuse("this LibTorch has no type '" + type + "'");
    }
    RowForm form{known->scalar, {}};
    std::string sizes;
    std::getline(in_ >> std::ws, sizes);
    if (sizes.size() < 2 || sizes.front() != '[' || sizes.back() != ']') {
      refuse("'" + sizes + "' are not sizes; write them as in [4, 84, 84]");
    }
    if (sizes == "[]") return form;
    std::istringstream parts(sizes.substr(1, sizes.size() - 2));
    for (std::string size; std::getline(parts >> std::ws, size, ',');)
      form.sizes.push_back(number(size, 0, kLargestSize));
    return form;
  }
  void end() {
    std::string more;
    if (in_ >> more) refuse("'" + more + "' is unexpected");
  }

 private:
  const std::string& path_;
  const std::string& text_;
  std::istringstream in_;
};

struct Seen {
  bool observation = false;
  bool batch = false;
  bool weights = false;
};

void parse_line(Line& line, PolicyDescription& description, Seen& seen) {
  const std::string key = line.word("a key");
  if (key == "torch") {
    description.torch = line.word("a version");
  } else if (key == "cpu") {
    description.cpu = line.word("a name of instructions");
  } else if (key == "observation") {
    description.observation = line.form();
    seen.observation = true;
  } else if (key == "batch") {
    const std::string size = line.word("a size");
    description.batch =
        size == "any" ? 0 : static_cast<std::size_t>(line.number(size, 1, kLargestPolicyBatch));
    seen.batch = true;
  } else if (key == "weights") {
    const std::string how = line.word("'updatable' or 'frozen'");
    if (how != "updatable" && how != "frozen")
      line.refuse("'" + how + "' is neither 'updatable' nor 'frozen'");
    description.updatable = how == "updatable";
    seen.weights = true;
  } else if (key == "state") {
    description.state = line.word("a digest");
  } else if (key == "weight") {
    const std::string name = line.word("a name");
    if (!description.weights.emplace(name, line.form()).second)
      line.refuse("the name occurs twice");
  } else {
    line.refuse("'" + key + "' is unknown");
  }
  line.end();
}

}  // namespace

PolicyDescription parse_policy_description(const std::string& path, const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  const auto next = [&] {
    const bool is_there = static_cast<bool>(std::getline(lines, line));
    if (line.ends_with('\r')) line.pop_back();
    return is_there;
  };
  if (!next() || line != std::string("format ") + kFormat) {
    throw InvalidArgument(path + " is a policy of '" + line +
                          "', but this batchrpc reads 'format " + kFormat +
                          "': export it again with its scripts/export_policy.py");
  }
  PolicyDescription description;
  Seen seen;
  while (next()) {
    Line words(path, line);
    parse_line(words, description, seen);
  }
  if (!seen.observation || !seen.batch || !seen.weights) {
    throw InvalidArgument(path +
                          " does not state its observation, batch and weights: export it again "
                          "with scripts/export_policy.py");
  }
  return description;
}

void require_made_for(const std::string& path, const PolicyDescription& description,
                      const std::string& torch, const std::string& cpu) {
  const std::string release = torch.substr(0, torch.rfind('.') + 1);  // "2.13."
  if (!description.torch.starts_with(release)) {
    throw InvalidArgument(path + " was made by LibTorch '" + description.torch +
                          "', but this is LibTorch " + torch +
                          ", which cannot run its code: export it again with PyTorch " + torch);
  }
  if (!description.cpu.empty() && description.cpu != cpu) {
    throw InvalidArgument(path + " was compiled for CPUs with " + description.cpu +
                          ", but this one has " + cpu + ": export it again on this machine");
  }
}

}  // namespace batchrpc::detail
