#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "batchrpc/wire/codec.hpp"

namespace batchrpc {
namespace detail {

template <class T>
concept Named = HasCodec<T> && requires {
  std::string_view(Codec<T>::name);
};

constexpr bool is_type_name(std::string_view name) {
  constexpr std::string_view reserved[] = {"bool",  "i8",   "i16", "i32", "i64", "u8",
                                           "u16",   "u32",  "u64", "f32", "f64", "str",
                                           "bytes", "void", "set", "map", "dur", "time"};
  for (const std::string_view word : reserved) {
    if (name == word) return false;
  }
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '.') return false;
  }
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9');
}

/// Composes signatures at compile time. It counts the characters, or also writes them.
class SignatureWriter {
 public:
  /// The enclosing types, the innermost first.
  template <class... Enclosing>
  struct Level {
    SignatureWriter& writer;
    constexpr void text(std::string_view text) { writer.text(text); }
    constexpr void number(std::uint64_t value) { writer.number(value); }
    template <class T>
    constexpr void type() {
      writer.type<T, Enclosing...>();
    }
  };

  /// With `structure`, the wire type of named codecs is written too: `name<wire>`.
  constexpr explicit SignatureWriter(bool structure, char* out = nullptr)
      : out_(out), structure_(structure) {}

  constexpr void text(std::string_view text) {
    for (const char c : text) {
      if (out_ != nullptr) out_[size_] = c;
      ++size_;
    }
  }
  constexpr void number(std::uint64_t value) {
    if (value >= 10) number(value / 10);
    const char digit = static_cast<char>('0' + value % 10);
    text({&digit, 1});
  }
  /// Writes T's signature. A type inside itself is `^n`, n levels up.
  template <class T, class... Enclosing>
  constexpr void type() {
    if constexpr (Named<T>) {
      static_assert(is_type_name(Codec<T>::name),
                    "batchrpc: a codec's name may have letters, digits, _ and ., and must not be a "
                    "built-in type's");
      text(Codec<T>::name);
      if (structure_) {
        text("<");
        type<typename Codec<T>::Wire, Enclosing...>();
        text(">");
      }
    } else if constexpr (HasCodec<T>) {
      type<typename Codec<T>::Wire, Enclosing...>();
    } else if constexpr ((std::is_same_v<T, Enclosing> || ...)) {
      constexpr bool same[] = {std::is_same_v<T, Enclosing>...};
      std::size_t up = 0;
      while (!same[up])
        ++up;
      text("^");
      number(up + 1);
    } else if constexpr (Builtin<T>::kLevel) {
      Level<T, Enclosing...> level{*this};
      Builtin<T>::sign(level);
    } else {
      Level<Enclosing...> level{*this};
      Builtin<T>::sign(level);
    }
  }
  template <class R, class... Args>
  constexpr void function() {
    if constexpr (std::is_void_v<R>) {
      text("void");
    } else {
      type<R>();
    }
    text("(");
    [[maybe_unused]] bool first = true;
    ((text(std::exchange(first, false) ? "" : ","), type<Args>()), ...);
    text(")");
  }

  [[nodiscard]] constexpr std::size_t size() const { return size_; }

 private:
  char* out_;
  bool structure_;
  std::size_t size_ = 0;
};

template <bool Structure, class R, class... Args>
struct SignatureText {
  static constexpr std::size_t measure() {
    SignatureWriter writer(Structure);
    writer.function<R, Args...>();
    return writer.size();
  }
  static constexpr auto write() {
    std::array<char, measure() + 1> text{};
    SignatureWriter writer(Structure, text.data());
    writer.function<R, Args...>();
    return text;
  }
  static constexpr auto kText = write();
  static constexpr std::string_view kView{kText.data(), kText.size() - 1};
};

template <class T>
constexpr bool require_in_signature() {
  if constexpr (!std::is_void_v<T>) require_encodable<T>();
  return std::is_void_v<T> || Encodable<T>;
}

}  // namespace detail

/// The text that caller and callee compare: a function's result and parameters as they are on the
/// wire, the same for every compiler. `i32(i32,[str],i64?)` is `int (int, const
/// std::vector<std::string>&, std::optional<long>)`. docs/wire.md has the grammar. The text ends
/// with a NUL and lives for ever.
template <class R, class... Args>
constexpr std::string_view signature() {
  if constexpr ((detail::require_in_signature<R>() && ... &&
                 detail::require_in_signature<Args>())) {
    return detail::SignatureText<false, std::remove_cvref_t<R>,
                                 std::remove_cvref_t<Args>...>::kView;
  } else {
    return {};
  }
}

/// Whether A and B have the same wire form, so that an argument of type A can be encoded directly
/// for a parameter of type B.
template <class A, class B>
constexpr bool same_wire() {
  if constexpr (Encodable<A> && Encodable<B>) {
    return signature<void, A>() == signature<void, B>();
  } else {
    return false;
  }
}

/// FNV-1a, 64 bits.
constexpr std::uint64_t signature_hash(std::string_view signature) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : signature) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace batchrpc
