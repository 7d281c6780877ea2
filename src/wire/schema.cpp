#include "batchrpc/wire/schema.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {
namespace {

/// A type, parsed from its signature.
struct Type {
  enum class Kind { leaf, list, set, map, structure, variant, option };
  Kind kind = Kind::leaf;
  std::string leaf;   // its name in the schema language
  std::string codec;  // the name that a Codec gave it
  std::vector<Type*> parts;
  std::string text;         // as in the signature
  bool refers_out = false;  // contains a `^n` that leads out of it, so its text alone is ambiguous
  std::string name;         // set once it is declared
  bool being_spelled = false;
};

/// Parses the output of SignatureWriter with `structure`; docs/wire.md has the grammar.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Type* result() {
    Type* const type = this->type();
    skip('(');
    return type;
  }
  std::vector<Type*> arguments() {
    std::vector<Type*> types = list(',', ')');
    if (at_ != text_.size()) refuse();
    return types;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void skip(char c) {
    if (!take(c)) refuse();
  }
  [[noreturn]] void refuse() const {
    throw InvalidArgument("not a signature: " + std::string(text_));
  }
  std::string_view word() {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' ||
           peek() == '.') {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }
  Type* make(Type::Kind kind) {
    types_.push_back(std::make_unique<Type>());
    types_.back()->kind = kind;
    return types_.back().get();
  }
  std::vector<Type*> list(char separator, char end) {
    std::vector<Type*> types;
    while (!take(end)) {
      if (!types.empty()) skip(separator);
      types.push_back(type());
    }
    return types;
  }

  Type* type() {
    const std::size_t begin = at_;
    const bool is_enclosing = peek() == '^';
    Type* result = base();
    while (take('?')) {
      Type* const option = make(Type::Kind::option);
      option->parts = {result};
      option->refers_out = is_enclosing || result->refers_out;
      option->text = text_.substr(begin, at_ - begin);
      result = option;
    }
    return result;
  }

  Type* base() {
    if (take('[')) return level(Type::Kind::list, '\0', ']');
    if (take('{')) return level(Type::Kind::structure, ',', '}');
    if (take('(')) return level(Type::Kind::variant, '|', ')');
    if (take('^')) return enclosing();
    const std::string_view name = word();
    if (name == "set" && take('(')) return level(Type::Kind::set, '\0', ')');
    if (name == "map" && take('(')) return level(Type::Kind::map, ',', ')');
    if ((name == "dur" || name == "time") && take('(')) return time();
    if (take('<')) {
      const bool is_enclosing = peek() == '^';
      Type* const wire = type();
      skip('>');
      // Only a struct of its own may have the codec's name.
      const bool is_struct = wire->kind == Type::Kind::structure ||
                             wire->kind == Type::Kind::variant || wire->kind == Type::Kind::option;
      if (is_struct && !is_enclosing && wire->codec.empty()) {
        wire->codec = name;
        wire->text = std::string(name) + "<" + wire->text + ">";
      }
      return wire;
    }
    return leaf(name);
  }

  Type* level(Type::Kind kind, char separator, char end) {
    const std::size_t begin = at_ - 1;
    Type* const result = make(kind);
    enclosing_.push_back(result);
    if (separator != '\0') {
      result->parts = list(separator, end);
    } else {
      result->parts = {type()};
      if (take(';')) word();  // an array's length is not part of the schema
      skip(end);
    }
    if (kind == Type::Kind::map && result->parts.size() != 2) refuse();
    enclosing_.pop_back();
    result->text = std::string(1, "lsmsvo"[static_cast<std::size_t>(kind) - 1]) +
                   std::string(text_.substr(begin, at_ - begin));
    return result;
  }

  Type* enclosing() {
    const std::string digits(word());
    const std::size_t up = digits.empty() ? 0 : std::stoul(digits);
    if (up == 0 || up > enclosing_.size()) refuse();
    for (std::size_t i = enclosing_.size() - up + 1; i < enclosing_.size(); ++i) {
      enclosing_[i]->refers_out = true;
    }
    return enclosing_[enclosing_.size() - up];
  }

  Type* time() {
    const std::size_t begin = at_;
    while (peek() != ')' && peek() != '\0')
      ++at_;
    const bool floating = text_.substr(begin, at_ - begin).find("f64") != std::string_view::npos;
    skip(')');
    return leaf(floating ? "f64" : "i64");
  }

  Type* leaf(std::string_view name) {
    static const std::map<std::string_view, const char*> names = {
        {"bool", "Bool"},  {"i8", "Int8"},     {"i16", "Int16"},   {"i32", "Int32"},
        {"i64", "Int64"},  {"u8", "UInt8"},    {"u16", "UInt16"},  {"u32", "UInt32"},
        {"u64", "UInt64"}, {"f32", "Float32"}, {"f64", "Float64"}, {"str", "Text"},
        {"void", "Void"},  {"bytes", "Bytes"},
    };
    const auto found = names.find(name);
    if (found == names.end()) refuse();
    Type* const result = make(Type::Kind::leaf);
    result->leaf = found->second;
    result->text = name;
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Type*> enclosing_;
  std::vector<std::unique_ptr<Type>> types_;
};

/// Writes the structs that types need.
class Writer {
 public:
  void fields(std::string_view name, const std::vector<std::string>& names,
              const std::vector<Type*>& types) {
    std::string text = "struct " + std::string(name) + " {\n";
    for (std::size_t i = 0; i < types.size(); ++i) {
      text += "  " + names[i] + " @" + std::to_string(i) + " :" + spell(*types[i]) + ";\n";
    }
    declarations_.push_back(std::move(text) + "}\n");
    declare_waiting();
  }

  [[nodiscard]] std::string text() const {
    std::string result;
    for (const std::string& declaration : declarations_)
      result += "\n" + declaration;
    return result;
  }

 private:
  // Structs are declared in the order of their first use, after the struct that uses them.
  void declare_waiting() {
    while (!waiting_.empty()) {
      const Type* const type = waiting_.front();
      waiting_.erase(waiting_.begin());
      if (type == nullptr) {
        declarations_.emplace_back(
            "struct Bytes {\n  union {\n    inline @0 :Data;\n    payload @1 :UInt32;  # an index "
            "among "
            "what travels beside the message\n  }\n  size @2 :UInt64;\n}\n");
        continue;
      }
      declare(*type);
    }
  }

  void declare(const Type& type) {
    const std::size_t place = declarations_.size();
    declarations_.emplace_back();
    std::string text = "struct " + type.name + " {\n";
    const bool is_union = type.kind == Type::Kind::option ||
                          (type.kind == Type::Kind::variant && type.parts.size() > 1);
    const char* const indent = is_union ? "    " : "  ";
    if (is_union) text += "  union {\n";
    std::size_t ordinal = 0;
    const auto field = [&](const std::string& name, Type* part) {
      text += indent + name + " @" + std::to_string(ordinal++) + " :" +
              (part == nullptr ? "Void" : spell(*part)) + ";\n";
    };
    if (type.kind == Type::Kind::option) {
      field("none", nullptr);
      field("some", type.parts[0]);
    } else if (type.kind == Type::Kind::map) {
      field("key", type.parts[0]);
      field("value", type.parts[1]);
    } else {
      const std::string prefix = type.kind == Type::Kind::variant ? "alternative" : "field";
      for (Type* const part : type.parts)
        field(prefix + std::to_string(ordinal), part);
    }
    if (is_union) text += "  }\n";
    declarations_[place] = text + "}\n";
  }

  std::string spell(Type& type) {
    switch (type.kind) {
      case Type::Kind::leaf:
        if (type.leaf == "Bytes" && !std::exchange(has_bytes_, true)) waiting_.push_back(nullptr);
        return type.leaf;
      case Type::Kind::list:
      case Type::Kind::set: {
        if (std::exchange(type.being_spelled, true)) {
          throw InvalidArgument("a list that contains itself as its element type has no schema");
        }
        std::string result = "List(" + spell(*type.parts[0]) + ")";
        type.being_spelled = false;
        return result;
      }
      case Type::Kind::map:
        return "List(" + name_of(type) + ")";
      case Type::Kind::structure:
      case Type::Kind::variant:
      case Type::Kind::option:
        break;
    }
    return name_of(type);
  }

  // Types with the same spelling share a struct.
  std::string name_of(Type& type) {
    if (!type.name.empty()) return type.name;
    if (!type.refers_out) {
      const auto known = by_text_.find(type.text);
      if (known != by_text_.end()) return type.name = known->second;
    }
    type.name = new_name(type);
    if (!type.refers_out) by_text_.emplace(type.text, type.name);
    waiting_.push_back(&type);
    return type.name;
  }

  std::string new_name(const Type& type) {
    std::string stem;
    bool upper = true;
    for (const char c : type.codec) {
      if (c == '_' || c == '.') {
        upper = true;
      } else {
        stem += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        upper = false;
      }
    }
    const bool named = !stem.empty();
    if (!named) {
      switch (type.kind) {
        case Type::Kind::option:
          stem = "Optional";
          break;
        case Type::Kind::variant:
          stem = "Variant";
          break;
        case Type::Kind::map:
          stem = "Entry";
          break;
        default:
          stem = "Struct";
          break;
      }
    }
    std::string name = stem;
    for (unsigned number = named ? 2 : 1;; ++number) {
      if (!named || number > 2) name = stem + std::to_string(named ? number - 1 : number);
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) break;
    }
    names_.push_back(name);
    return name;
  }

  std::vector<std::string> declarations_;
  std::vector<Type*> waiting_;  // null means Bytes
  std::vector<std::string> names_{"Arguments", "Result", "Bytes", "Text", "Data", "List", "Void"};
  std::map<std::string, std::string> by_text_;
  bool has_bytes_ = false;
};

}  // namespace

std::string schema_text(std::string_view structure, std::string_view function_name) {
  Parser parser(structure);
  Type* const result = parser.result();
  const std::vector<Type*> arguments = parser.arguments();

  Writer writer;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    names.push_back("arg" + std::to_string(i));
  writer.fields("Arguments", names, arguments);
  const bool is_void = result->kind == Type::Kind::leaf && result->leaf == "Void";
  if (is_void) {
    writer.fields("Result", {}, {});
  } else {
    writer.fields("Result", {"result"}, {result});
  }

  std::string key(function_name);
  key.append(1, ' ').append(structure);
  const std::uint64_t id = signature_hash(key) | (std::uint64_t{1} << 63);
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4)
    hex += "0123456789abcdef"[(id >> shift) & 15U];
  std::string comment(function_name);
  std::replace_if(
      comment.begin(), comment.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return "@0x" + hex + ";\n# " + comment + ": " + std::string(structure) + "\n" + writer.text();
}

}  // namespace batchrpc::detail
