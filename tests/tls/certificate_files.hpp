#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/replace_file.hpp"
#include "batchrpc/transport/security.hpp"
#include "tls/credentials.hpp"
#include "tls/make_certificate.hpp"

namespace batchrpc::test {

/// A folder with an authority and the certificates of nodes, which goes with this object.
class CertificateFiles {
 public:
  CertificateFiles() {
    std::string form = std::filesystem::temp_directory_path() / "batchrpc-certificates-XXXXXX";
    if (::mkdtemp(form.data()) == nullptr) throw std::bad_alloc();
    folder_ = form;
    write("ca.pem", authority_.certificate);
  }
  ~CertificateFiles() { std::filesystem::remove_all(folder_); }
  CertificateFiles(const CertificateFiles&) = delete;
  CertificateFiles& operator=(const CertificateFiles&) = delete;

  /// Of the node of this name in the job "job", valid from and until times from now.
  [[nodiscard]] SecurityOptions options(const std::string& name,
                                        std::chrono::hours from = std::chrono::hours(-1),
                                        std::chrono::hours until = std::chrono::hours(1)) const {
    return written(name, authority_, {.uri = uri(name), .dns = {}}, from, until);
  }
  /// With other names in the certificate.
  [[nodiscard]] SecurityOptions named(const std::string& name, const tls::Names& names) const {
    return written(name, authority_, names, std::chrono::hours(-1), std::chrono::hours(1));
  }
  [[nodiscard]] SecurityOptions by_other_authority(const std::string& name) const {
    const tls::KeyPair other = tls::make_authority("other", validity());
    return written(name, other, {.uri = uri(name), .dns = {}}, std::chrono::hours(-1),
                   std::chrono::hours(1));
  }
  /// Writes the list of these revoked certificates, and returns its path.
  [[nodiscard]] std::string revocations(const std::vector<std::string>& paths) const {
    std::string revoked;
    for (const std::string& path : paths) {
      std::ifstream file(path);
      revoked.append(std::istreambuf_iterator<char>(file), {});
    }
    return write("crl.pem", tls::make_revocations(authority_, revoked, validity()));
  }

  /// Writes a file of the folder, and returns its path. Readers find the old one or the whole new
  /// one.
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    if (replace_file(path, text, 0600)) throw std::bad_alloc();
    return path;
  }

 private:
  static std::string uri(const std::string& name) { return "spiffe://test/job/job/node/" + name; }
  static tls::Validity validity() {
    const auto now = std::chrono::system_clock::now();
    return {.from = now - std::chrono::hours(1), .until = now + std::chrono::hours(1)};
  }
  [[nodiscard]] SecurityOptions written(const std::string& name, const tls::KeyPair& authority,
                                        const tls::Names& names, std::chrono::hours from,
                                        std::chrono::hours until) const {
    const auto now = std::chrono::system_clock::now();
    const tls::KeyPair made =
        tls::make_certificate(authority, names, {.from = now + from, .until = now + until});
    SecurityOptions options;
    options.certificate = write(name + ".pem", made.certificate);
    options.key = write(name + ".key", made.key);
    options.authority = folder_ + "/ca.pem";
    return options;
  }

  std::string folder_;
  const tls::KeyPair authority_ = tls::make_authority("test", validity());
};

/// Credentials by certificates that need not be good for this node.
/// `version`: of TLS.
inline std::shared_ptr<tls::Credentials> unchecked_credentials(const SecurityOptions& options,
                                                               int version = TLS1_3_VERSION) {
  class Unchecked final : public tls::Credentials {
   public:
    Unchecked(const SecurityOptions& files, int tls) : context_(tls::new_context()) {
      SSL_CTX_set_min_proto_version(context_.get(), tls);
      SSL_CTX_set_max_proto_version(context_.get(), tls);
      SSL_CTX_use_certificate_chain_file(context_.get(), files.certificate.c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_load_verify_locations(context_.get(), files.authority.c_str(), nullptr);
    }
    tls::ContextPtr context() const override { return context_; }
    tls::ProvenPeer prove(SSL& /*ssl*/) const override {
      return {.proof = std::make_shared<const PeerProof>()};
    }
    std::error_code explain(SSL& /*ssl*/, std::error_code error) const override { return error; }

   private:
    const tls::ContextPtr context_;
  };
  return std::make_shared<Unchecked>(options, version);
}

}  // namespace batchrpc::test
