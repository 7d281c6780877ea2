#include "torch/parsed_signature.hpp"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {
namespace {

using c10::IValue;
using c10::TypeKind;

// Splits `text` at the commas that are outside all brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// The position of the bracket that opens the parameters.
std::size_t find_parameters(std::string_view text) {
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

RuntimeStruct::Field field_of(std::string_view text) {
  RuntimeStruct::Field field;
  std::string list;
  if (const auto semicolon = text.rfind(';'); semicolon != std::string_view::npos) {
    // An array, [T;N], is a list on the wire.
    const std::string_view digits = text.substr(semicolon + 1);
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), length);
    if (error == std::errc() && std::string_view(end, digits.end()) == "]") {
      field.length = length;
      list = std::string(text.substr(0, semicolon)) + "]";
    }
  }
  field.type = find_encoding(field.length ? std::string_view(list) : text);
  if (field.type == nullptr) {
    throw BadSignature(
        "an operator has no " + std::string(text) +
        " among its arguments and results; allowed are tensors, numbers, bools, "
        "strings, IValues, optionals and lists of these, Keywords, and tuples as results");
  }
  return field;
}

std::vector<RuntimeStruct::Field> fields_of(std::string_view text) {
  const auto parts = split(text);
  if (parts.size() > RuntimeStruct::kMostFields) {
    throw BadSignature("an operator may not have more than " +
                       std::to_string(RuntimeStruct::kMostFields) + " arguments or results");
  }
  std::vector<RuntimeStruct::Field> fields;
  for (const std::string_view part : parts)
    fields.push_back(field_of(part));
  return fields;
}

}  // namespace

ParsedSignature ParsedSignature::parse(std::string_view text) {
  const std::size_t open = find_parameters(text);
  if (text.size() > kMaxParsedSignature || open == std::string_view::npos || !text.ends_with(')')) {
    throw BadSignature("the text is not a signature of at most " +
                       std::to_string(kMaxParsedSignature) + " characters");
  }
  ParsedSignature parsed;
  parsed.arguments = RuntimeStruct(fields_of(text.substr(open + 1, text.size() - open - 2)));
  const auto& fields = parsed.arguments.fields();
  const auto keywords = std::find_if(fields.begin(), fields.end(),
                                     [](const auto& field) { return field.type->is_keywords; });
  parsed.has_keywords = keywords != fields.end();
  if (parsed.has_keywords && keywords + 1 != fields.end()) {
    throw BadSignature("keyword arguments come last, and once");
  }
  const std::string_view result = text.substr(0, open);
  parsed.result = result;
  if (result == "void") return parsed;
  parsed.is_struct = result.starts_with('{') && result.ends_with('}');
  parsed.results =
      RuntimeStruct(fields_of(parsed.is_struct ? result.substr(1, result.size() - 2) : result));
  if (!parsed.is_struct && parsed.results.fields().size() != 1) {
    throw BadSignature("the signature must have exactly one result");
  }
  return parsed;
}

bool ParsedSignature::holds_results(const std::vector<c10::TypePtr>& types) const {
  const auto& fields = results.fields();
  if (is_struct) {
    if (fields.size() != types.size()) return false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!fields[i].type->holds(*types[i])) return false;
    }
    return true;
  }
  if (fields.empty() || result == "ivalue") return true;
  if (types.size() == 1) return fields[0].type->holds(*types[0]);
  if (types.empty() || result != "[tensor]") return false;
  return std::all_of(types.begin(), types.end(),
                     [](const c10::TypePtr& type) { return type->kind() == TypeKind::TensorType; });
}

void ParsedSignature::write_results(Encoder& encoder, std::size_t pointer,
                                    std::vector<c10::IValue> values) const {
  if (results.fields().empty() && !is_struct) return results.write(encoder, pointer, {});
  if (is_struct) {
    // The struct of the result has one field, a pointer to this one.
    const std::size_t place = encoder.add_struct(pointer, {.data = 0, .pointers = 1});
    if (values.size() != results.fields().size()) {
      throw InvalidArgument("the operator has " + std::to_string(values.size()) +
                            " results, but the caller expects " +
                            std::to_string(results.fields().size()));
    }
    return results.write(encoder, place, values);
  }
  if (values.size() != 1) {
    const IValue all = result == "ivalue" && values.empty() ? IValue()
                       : result == "ivalue" ? IValue(c10::ivalue::Tuple::create(std::move(values)))
                                            : list_of(c10::TensorType::get(), std::move(values));
    return results.write(encoder, pointer, all);
  }
  results.write(encoder, pointer, values[0]);
}

}  // namespace batchrpc::detail
