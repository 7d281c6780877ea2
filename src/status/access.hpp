#pragma once

#include <string_view>

#include "base/secret.hpp"

namespace batchrpc::status {

/// Who may read a status page: everyone, or clients that send its token.
class Access {
 public:
  /// An empty token: everyone. Throws InvalidArgument if a header cannot carry the token.
  explicit Access(std::string_view token);

  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  /// Whether a request with this Authorization header is answered: "Bearer TOKEN", or "Basic" with
  /// the token as the password of any user. How long this takes depends only on the header.
  [[nodiscard]] bool allows(std::string_view authorization) const;

 private:
  [[nodiscard]] bool is_token(std::string_view text) const noexcept;

  const bool is_open_;
  const Secret key_;  // random: a client cannot choose texts whose hashes are nearly right
  const Secret expected_;
};

}  // namespace batchrpc::status
