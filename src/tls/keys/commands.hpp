#pragma once

#include <string>
#include <vector>

namespace batchrpc::keys {

/// What the program is asked to do. Each prints what it has written and the next step; each throws
/// an exception whose what() is one sentence for the user, and then has written nothing.
/// @{

/// A new join token.
void write_token(const std::string& file);

/// A new authority in a folder, which is created if there is none.
struct AuthorityWish {
  std::string folder{};
  int days = 3650;
};
void write_authority(const AuthorityWish& wish);

/// The certificate and key of a node, signed by the folder's authority.
struct NodeWish {
  std::string folder{};
  std::string name{};    ///< of the node; `*` stands for any characters
  std::string job{};     ///< empty: "*", or when it is renewed that of the old certificate
  std::string domain{};  ///< empty: "batchrpc", or that of the old certificate
  int days = 365;
};
void write_node(const NodeWish& wish);
/// The same in place of the node's files. Keeps the old certificate under its serial number, since
/// it is valid until it is revoked.
void renew_node(const NodeWish& wish);

/// The folder's list of revoked certificates, with these too.
struct RevokeWish {
  std::string folder{};
  std::vector<std::string> certificates{};  ///< files, or names of nodes of the folder
  int days = 3650;  ///< after that, nodes refuse the list, and so each other
};
void write_revocations(const RevokeWish& wish);
/// @}

}  // namespace batchrpc::keys
