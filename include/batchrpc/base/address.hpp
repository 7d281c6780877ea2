#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Where a node listens or is reached: a scheme and a name, written `scheme://name` or
/// `scheme:name`. The scheme says which transport serves the address, and that transport knows what
/// names are right (Transport::check): `tcp://host:port`, `unix:///path`, `unix-abstract:name` and
/// `inproc://name` are those of the library.
class BATCHRPC_EXPORT Address {
 public:
  /// Looks at no more than the scheme and whether a name follows. A scheme is of small letters,
  /// digits, `+`, `-` and `.`, a letter first. Throws InvalidArgument, with an example of what is
  /// right.
  [[nodiscard]] static Address parse(std::string_view text);

  /// What stands before the first colon.
  [[nodiscard]] const std::string& scheme() const noexcept { return scheme_; }
  /// What stands behind it, without the two slashes that may come first.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The text that parse() read.
  [[nodiscard]] const std::string& to_string() const noexcept { return text_; }

  /// Throws InvalidArgument that shows the address and says `why` it is refused.
  [[noreturn]] void refuse(const std::string& why) const;

  friend bool operator==(const Address&, const Address&) = default;

 private:
  Address(std::string text, std::string scheme, std::string name)
      : text_(std::move(text)), scheme_(std::move(scheme)), name_(std::move(name)) {}

  std::string text_;
  std::string scheme_;
  std::string name_;
};

}  // namespace batchrpc
