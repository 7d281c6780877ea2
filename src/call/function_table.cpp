#include "call/function_table.hpp"

#include <algorithm>
#include <mutex>

#include "batchrpc/base/error.hpp"
#include "batchrpc/metrics/node_metrics.hpp"

namespace batchrpc {
namespace {

// A text that a peer may have made as long as it likes.
std::string cut(std::string text) {
  constexpr std::size_t kMost = 2000;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;  // not within a letter
  text.resize(end);
  return text + "…";
}

}  // namespace

std::string_view shown_name(std::string_view name) {
  const auto colon = name.starts_with(kReservedPrefix) ? name.find(':') : std::string_view::npos;
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

bool begins_with(std::string_view signature, std::string_view parameter) {
  const auto parameters = signature.find('(');
  return parameters != std::string_view::npos &&
         signature.substr(parameters + 1).starts_with(parameter);
}

std::string_view counted_name(std::string_view name) {
  return is_of_library(name) ? kLibraryName : shown_name(name);
}

// --- kinds

void FunctionTable::add_kind(const detail::FunctionKind& kind) {
  const std::unique_lock lock(mutex_);
  const auto is_same = [&](const detail::FunctionKind& known) {
    return known.prefix == kind.prefix;
  };
  if (std::none_of(kinds_.begin(), kinds_.end(), is_same)) kinds_.push_back(kind);
}

detail::FunctionKind FunctionTable::kind_of(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  for (const detail::FunctionKind& kind : kinds_) {
    if (name.starts_with(kind.prefix)) return kind;
  }
  return {.prefix = {}};
}

std::string FunctionTable::shown(std::string_view name) const {
  const detail::FunctionKind kind = kind_of(name);
  return std::string(kind.shown.empty() ? shown_name(name) : kind.shown);
}

std::string FunctionTable::shown_signature(std::string_view name,
                                           std::string_view signature) const {
  const detail::FunctionKind kind = kind_of(name);
  std::string text(signature);
  for (std::size_t left = kind.own_parameters; left > 0; --left) {
    if (!begins_with(text, kind.own_parameter)) break;
    const auto begin = text.find('(') + 1;
    text.erase(begin, kind.own_parameter.size());
    if (text.compare(begin, 1, ",") == 0) text.erase(begin, 1);
  }
  return text;
}

std::string FunctionTable::suggest(std::string_view name,
                                   const std::vector<std::string>& candidates) const {
  return batchrpc::suggest(name, candidates, [this](std::string_view any) {
    const detail::FunctionKind kind = kind_of(any);
    return kind.stem != nullptr ? kind.stem(any) : any;
  });
}

// --- functions

void FunctionTable::add(std::shared_ptr<detail::ExposedFunction> function) {
  if (function->name.empty()) throw InvalidArgument("expose: the function's name is empty");
  const std::string& name = function->name;
  if (const detail::FunctionKind* const kind = function->kind()) add_kind(*kind);
  function->shown = shown(name);
  function->of_library = is_of_library(name);
  const std::unique_lock lock(mutex_);
  if (functions_.contains(name)) {
    throw InvalidArgument("expose: '" + name +
                          "' is already exposed; unexpose it first or choose another name");
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
                                                                std::string_view node,
                                                                TimePoint now) const {
  const auto found = find(name);
  if (!found) throw NotFound(why_not_found(name, node, now));
  auto function = found->with_signature(signature);
  if (!function) {
    const detail::FunctionKind kind = kind_of(name);
    throw BadSignature(
        std::string(kind.described) + "'" + shown(name) + "' on " + std::string(node) +
        " has the signature " + shown_signature(name, found->signature) + ", but was called as " +
        cut(shown_signature(name, signature)) + "; " + std::string(kind.if_signature_differs));
  }
  return function;
}

bool FunctionTable::is_used_otherwise(std::string_view name) const {
  const bool is_ordinary = !kind_of(name).is_ordinary.empty() && find(shown(name));
  return is_ordinary || !used_as(name).empty();
}

std::string FunctionTable::why_not_found(std::string_view name, std::string_view node,
                                         TimePoint now) const {
  const detail::FunctionKind kind = kind_of(name);
  const std::string known = shown(name);
  const std::string quoted = "'" + known + "'";
  const std::string exposed = " is exposed on " + std::string(node);
  if (!kind.is_ordinary.empty() && find(known)) {
    return quoted + exposed + " " + std::string(kind.is_ordinary);
  }
  if (const std::string_view as = used_as(name); !as.empty()) {
    return quoted + exposed + " " + std::string(as);
  }
  const bool suggests = kind.suggests && suggestion_rate_.take(now);
  const std::string near = suggests ? suggest(known, shown_names_like(name)) : std::string();
  return "no " + std::string(kind.noun) + " " + quoted + exposed + "; " +
         (near.empty() ? std::string(kind.if_missing) : near) +
         (kind.hint != nullptr ? kind.hint(known) : "");
}

// Returns the kind as which a function is exposed that was called as an ordinary one; empty: it is
// not exposed.
std::string_view FunctionTable::used_as(std::string_view name) const {
  if (name.starts_with(kReservedPrefix)) return {};
  const std::shared_lock lock(mutex_);
  for (const detail::FunctionKind& kind : kinds_) {
    if (!kind.used_as.empty() && functions_.contains(std::string(kind.prefix).append(name))) {
      return kind.used_as;
    }
  }
  return {};
}

// Returns the names of functions of the same kind: methods, factories, or names without a reserved
// prefix.
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
