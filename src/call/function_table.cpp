#include "call/function_table.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "batchrpc/base/error.hpp"
#include "batchrpc/metrics/node_metrics.hpp"

namespace batchrpc {
namespace {

// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string_view last_part(std::string_view name) {
  const auto colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

constexpr std::string_view kValue = "batchrpc.value:";
constexpr std::string_view kOperatorPrefix = "aten::";  // LibTorch's own, of batchrpc::torch

// An operator's name without that of an overload.
std::string_view operator_of(std::string_view name) {
  return name.starts_with(kOperatorPrefix) ? name.substr(0, name.find('.')) : name;
}

}  // namespace

std::string shown_signature(std::string_view name, std::string_view signature) {
  constexpr std::string_view kId = "{u64,u64,u64}";
  std::string text(signature);
  const auto begin = text.find('(') + 1;
  for (int ids = !name.starts_with(kReservedPrefix) ? 0
                 : name.starts_with(kOpenPrefix)    ? 2
                                                    : 1;
       ids > 0 && text.compare(begin, kId.size(), kId) == 0; --ids) {
    text.erase(begin, kId.size());
    if (text.compare(begin, 1, ",") == 0) text.erase(begin, 1);
  }
  return text;
}

std::string_view shown_name(std::string_view name) {
  if (name == kReadyFunction) return "ready()";
  const auto colon = name.starts_with(kReservedPrefix) ? name.find(':') : std::string_view::npos;
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

std::string_view counted_name(std::string_view name) {
  return is_of_library(name) ? kLibraryName : shown_name(name);
}

std::string suggest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 256;  // a name from the wire may be anything
  std::vector<std::pair<std::size_t, std::string_view>> near;
  if (name.size() > kLongest) return {};
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest || candidate.starts_with(kReservedPrefix)) continue;
    const std::size_t edits = last_part(operator_of(candidate)) == last_part(operator_of(name))
                                  ? 0
                                  : distance(name, candidate);
    if (edits <= 1 + name.size() / 4) near.emplace_back(edits, candidate);
  }
  if (near.empty()) return {};
  std::sort(near.begin(), near.end());
  near.resize(std::min<std::size_t>(near.size(), 3));
  std::string text;
  for (const auto& [edits, candidate] : near) {
    text += text.empty() ? "did you mean '" : ", '";
    text += candidate;
    text += "'";
  }
  return text + "?";
}

void FunctionTable::add(std::shared_ptr<detail::ExposedFunction> function) {
  if (function->name.empty()) throw InvalidArgument("expose: the function's name is empty");
  const std::string& name = function->name;
  const std::unique_lock lock(mutex_);
  if (functions_.contains(name)) {
    throw InvalidArgument("expose: '" + name +
                          "' is exposed already; unexpose it first or choose another name");
  }
  functions_.emplace(name, std::move(function));
}

bool FunctionTable::remove(std::string_view name) {
  std::shared_ptr<detail::ExposedFunction> removed;  // destroyed without the lock
  const std::unique_lock lock(mutex_);
  const auto at = functions_.find(name);
  if (at == functions_.end()) return false;
  removed = std::move(at->second);
  removed->take_back();
  functions_.erase(at);
  return true;
}

std::shared_ptr<detail::ExposedFunction> FunctionTable::find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto at = functions_.find(name);
  return at != functions_.end() ? at->second : nullptr;
}

std::shared_ptr<detail::ExposedFunction> FunctionTable::resolve(std::string_view name,
                                                                std::string_view signature,
                                                                std::string_view node) const {
  const auto found = find(name);
  if (!found) throw NotFound(why_not_found(name, node));
  auto function = found->with_signature(signature);
  if (!function) {
    throw BadSignature((name.starts_with(kCreatePrefix) ? "the constructor of '" : "'") +
                       std::string(shown_name(name)) + "' on " + std::string(node) +
                       " has the signature " + shown_signature(name, found->signature) +
                       ", it was called as " + shown_signature(name, signature) +
                       (name.starts_with(kCreatePrefix)
                            ? "; call create<T(types)>() with the types that expose_class names"
                            : "; build caller and callee from one declaration"));
  }
  return function;
}

std::string FunctionTable::why_not_found(std::string_view name, std::string_view node) const {
  const std::string shown(shown_name(name));
  const std::string quoted = "'" + shown + "'";
  const std::string exposed = " is exposed on " + std::string(node);
  const bool is_method = name.starts_with(kMethodPrefix);
  if (name.starts_with(kCreatePrefix) || name.starts_with(kValue)) {
    return "no class or factory " + quoted + exposed +
           "; call expose_class or expose_factory there before an object is created or copied";
  }
  if (is_method && find(shown)) {
    return quoted + exposed + " as a function: call it on the node, not on an RRef";
  }
  if (name == shown && find(std::string(kMethodPrefix) + shown)) {
    return quoted + exposed + " as a method of objects: call it on an RRef";
  }
  const bool is_factory = name.starts_with(kOpenPrefix);
  const std::string near = suggest(shown, shown_names_like(name));
  const char* const remedy = is_factory ? "call expose_factory there before it makes an object"
                                        : "expose it there before it is called";
  return (is_factory  ? "no factory "
          : is_method ? "no method "
                      : "no function ") +
         quoted + exposed + "; " + (near.empty() ? remedy : near) +
         (name.starts_with(kOperatorPrefix)
              ? " (an operator of LibTorch is called once expose_operators(node, {\"" + shown +
                    "\"}) was called there)"
              : "");
}

// Of functions of the same kind: methods, factories, or what has no reserved name.
std::vector<std::string> FunctionTable::shown_names_like(std::string_view name) const {
  const auto kind = name.substr(0, name.size() - shown_name(name).size());
  std::vector<std::string> alike;
  for (const std::string& other : names()) {
    if (other.starts_with(kind)) alike.push_back(other.substr(kind.size()));
  }
  return alike;
}

std::vector<std::string> FunctionTable::names() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> names;
  names.reserve(functions_.size());
  for (const auto& [name, function] : functions_)
    names.push_back(name);
  return names;
}

void FunctionTable::clear() {
  Map functions;
  const std::unique_lock lock(mutex_);
  functions.swap(functions_);
  for (auto& [name, function] : functions)
    function->take_back();
}

}  // namespace batchrpc
