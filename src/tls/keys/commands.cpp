#include "tls/keys/commands.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/plain_text.hpp"
#include "base/replace_file.hpp"
#include "batchrpc/base/error.hpp"
#include "tls/certificate_name.hpp"
#include "tls/keys/files.hpp"
#include "tls/make_certificate.hpp"

namespace batchrpc::keys {
namespace {

constexpr std::size_t kMostShown = 300;

std::string quoted(const std::string& text) { return "'" + escaped(text, kMostShown) + "'"; }

// From an hour ago, so that machines whose clocks are late accept it.
tls::Validity valid_for(int days) {
  const auto now = std::chrono::system_clock::now();  // NOLINT(layers): it is a program
  return {.from = now - std::chrono::hours(1), .until = now + std::chrono::hours(24) * days};
}

std::string in(const std::string& folder, const std::string& file) {
  return folder.ends_with('/') ? folder + file : folder + '/' + file;
}

tls::KeyPair authority_of(const std::string& folder) {
  if (!is_taken(in(folder, "ca.pem"))) {
    throw std::runtime_error("there is no authority in " + quoted(folder) +
                             "; make one: batchrpc-keys authority " + folder);
  }
  return {.certificate = read_file(in(folder, "ca.pem")), .key = read_file(in(folder, "ca.key"))};
}

/// A segment of a URI that stands for this text, in which `*` remains a pattern.
std::string segment_of(const std::string& text) {
  constexpr std::string_view kAsTheyAre =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~*";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string segment;
  for (const char c : text) {
    if (kAsTheyAre.find(c) != std::string_view::npos) {
      segment += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    segment += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return segment;
}

/// Where a node's files go, less their endings: each character that some shell or file system
/// treats in its own way becomes '_'.
std::string file_stem_of(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    throw std::runtime_error("the name " + quoted(name) +
                             " has a slash, so it cannot be the name of a file; choose another");
  }
  if (name == "ca" || name == "crl") {
    throw std::runtime_error("the name " + quoted(name) +
                             " is that of the authority's own files; choose another");
  }
  std::string stem;
  for (const char c : name) {
    const bool is_safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    const bool is_first = stem.empty() && (c == '.' || c == '-');
    stem += is_safe && !is_first ? c : '_';
  }
  return stem;
}

// Nodes that look meanwhile find a key that is not that of the certificate, and keep what they
// have.
void replace_pair(const std::string& path, const tls::KeyPair& pair) {
  for (const auto& [file, text, mode] :
       {std::tuple(path + ".key", pair.key, kSecretMode),
        std::tuple(path + ".pem", pair.certificate, kPublicMode)}) {
    if (const std::error_code error = replace_file(file, text, mode))
      throw std::runtime_error(file + " cannot be written: " + error.message());
  }
}

/// The parts of spiffe://DOMAIN/job/JOB/node/NODE, as they are there.
struct UriParts {
  std::string domain;
  std::string job;
  std::string node;

  [[nodiscard]] std::string uri() const {
    return "spiffe://" + domain + "/job/" + job + "/node/" + node;
  }
};

// Empty parts for an identity of another form.
UriParts parts_of(const std::string& identity) {
  constexpr std::string_view kScheme = "spiffe://";
  if (!identity.starts_with(kScheme)) return {};
  const std::size_t job = identity.find("/job/");
  const std::size_t node = identity.find("/node/");
  if (job == std::string::npos || node == std::string::npos) return {};
  return {.domain = identity.substr(kScheme.size(), job - kScheme.size()),
          .job = identity.substr(job + 5, node - job - 5),
          .node = identity.substr(node + 6)};
}

void require_uri(const std::string& uri) {
  try {
    (void)tls::parse_uri_name(uri);
  } catch (const PermissionDenied& error) {
    throw std::runtime_error(std::string("nodes would refuse such a certificate: ") + error.what());
  }
}

tls::KeyPair certificate_of(const NodeWish& wish, const UriParts& parts) {
  require_uri(parts.uri());
  return tls::make_certificate(authority_of(wish.folder), {.uri = parts.uri(), .dns = {}},
                               valid_for(wish.days));
}

void report_node(const NodeWish& wish, const std::string& path, const UriParts& parts) {
  std::cout << "wrote " << path << ".pem and " << path << ".key: " << parts.uri() << ", for "
            << wish.days << " days\n"
            << "next: copy both and " << in(wish.folder, "ca.pem") << " to the node\n";
}

/// The certificate that is meant by the name of a node, or by that of a file.
std::string certificate_file(const std::string& folder, const std::string& wanted) {
  if (wanted.find('/') != std::string::npos || wanted.ends_with(".pem")) return wanted;
  return in(folder, file_stem_of(wanted) + ".pem");
}

}  // namespace

void write_token(const std::string& file) {
  write_new_file(file, tls::make_token(), kSecretMode);
  std::cout << "wrote " << file << ": a join token\n"
            << "next: copy it to every node of the group, and to nobody else\n";
}

void write_authority(const AuthorityWish& wish) {
  if (::mkdir(wish.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw std::runtime_error(wish.folder +
                             " cannot be created: " + std::generic_category().message(errno));
  }
  // Authorities differ in their names, so that people can tell them apart.
  const std::string name = "batchrpc authority " + tls::make_token().substr(0, 16);
  const tls::KeyPair pair = tls::make_authority(name, valid_for(wish.days));
  const std::string path = in(wish.folder, "ca");
  write_new_pair(path, pair.certificate, pair.key);
  std::cout << "wrote " << path << ".pem and " << path << ".key: an authority for " << wish.days
            << " days\n"
            << "next: keep ca.key secret, and make certificates: batchrpc-keys node " << wish.folder
            << " NAME\n";
}

void write_node(const NodeWish& wish) {
  const std::string path = in(wish.folder, file_stem_of(wish.name));
  const UriParts parts{.domain = wish.domain.empty() ? "batchrpc" : wish.domain,
                       .job = wish.job.empty() ? "*" : segment_of(wish.job),
                       .node = segment_of(wish.name)};
  const tls::KeyPair pair = certificate_of(wish, parts);
  write_new_pair(path, pair.certificate, pair.key);
  report_node(wish, path, parts);
}

void renew_node(const NodeWish& wish) {
  const std::string path = in(wish.folder, file_stem_of(wish.name));
  if (!is_taken(path + ".pem"))
    throw std::runtime_error(path + ".pem does not exist; make it: batchrpc-keys node");
  const std::string old = read_file(path + ".pem");
  const tls::CertificateFacts facts = tls::facts_of(old);
  UriParts parts = parts_of(facts.identity);
  if (parts.node != segment_of(wish.name)) {
    throw std::runtime_error(path + ".pem is that of " + quoted(facts.identity) +
                             "; give the name as it is there");
  }
  if (!wish.job.empty()) parts.job = segment_of(wish.job);
  if (!wish.domain.empty()) parts.domain = wish.domain;
  const tls::KeyPair pair = certificate_of(wish, parts);
  const std::string kept = path + "." + facts.serial + ".pem";
  if (!is_taken(kept)) write_new_file(kept, old, kPublicMode);
  replace_pair(path, pair);
  report_node(wish, path, parts);
  std::cout << "the old certificate stays valid; if its key was stolen: batchrpc-keys revoke "
            << wish.folder << " " << kept << "\n";
}

namespace {

// A line for each earlier certificate of the node that `file` belongs to, which renew has kept.
std::string earlier_of(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string start = path.stem().string() + ".";
  std::string lines;
  for (const auto& entry : std::filesystem::directory_iterator(
           path.has_parent_path() ? path.parent_path() : std::filesystem::path("."))) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".pem" || !name.starts_with(start)) continue;
    const std::string serial = name.substr(start.size());
    if (serial.size() < 16 || serial.find_first_not_of("0123456789abcdef") != std::string::npos)
      continue;
    lines += "note: " + entry.path().string() +
             " is an earlier certificate of that node; name it, too, to revoke it\n";
  }
  return lines;
}

}  // namespace

void write_revocations(const RevokeWish& wish) {
  const tls::KeyPair authority = authority_of(wish.folder);
  const std::string path = in(wish.folder, "crl.pem");
  std::string list = is_taken(path) ? read_file(path) : std::string();
  std::string done;
  if (wish.certificates.empty())
    list = tls::make_revocations(authority, {}, valid_for(wish.days), list);
  for (const std::string& wanted : wish.certificates) {
    const std::string file = certificate_file(wish.folder, wanted);
    const std::string certificate = read_file(file);
    try {
      if (certificate.empty()) throw InvalidArgument("the file is empty");
      list = tls::make_revocations(authority, certificate, valid_for(wish.days), list);
    } catch (const InvalidArgument& error) {
      throw std::runtime_error(file + " cannot be revoked: " + error.what());
    }
    done += "revoked " + file + "\n" + earlier_of(file);
  }
  if (const std::error_code error = replace_file(path, list, kPublicMode))
    throw std::runtime_error(path + " cannot be written: " + error.message());
  std::cout << "wrote " << path << ": the certificates revoked so far, for " << wish.days
            << " days\n"
            << done << "next: copy it to every node, which then refuses them\n";
}

}  // namespace batchrpc::keys
