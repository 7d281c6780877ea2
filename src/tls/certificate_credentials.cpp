#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <mutex>
#include <new>
#include <utility>

#include "base/file_stamp.hpp"
#include "batchrpc/base/error.hpp"
#include "tls/certificate_name.hpp"
#include "tls/credentials.hpp"
#include "tls/tls_error.hpp"

namespace batchrpc::tls {
namespace {

[[noreturn]] void refuse(const char* option, const std::string& path, const std::string& why) {
  throw InvalidArgument("NodeOptions::security." + std::string(option) + ": " + path + " " + why);
}

[[noreturn]] void refuse_by_openssl(const char* option, const std::string& path,
                                    const std::string& what) {
  const std::string reason = take_openssl_error();
  refuse(option, path, what + (reason.empty() ? "" : " (" + reason + ")"));
}

// A reader of a FIFO or a device would wait, and the node with it.
void check_readable(const char* option, const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    refuse(option, path, "is a FIFO, a device or a folder; name a file in the PEM format");
}

// Its group may read it: root may own the key, and let the group of the service read it.
void check_private(const std::string& key) {
  struct stat found {};
  if (::stat(key.c_str(), &found) != 0 || (found.st_mode & S_IRWXO) == 0) return;
  refuse("key", key,
         "can be read or written by every user of this host; run: chmod o= on it (for a secret of "
         "Kubernetes, set defaultMode: 0440)");
}

// Adds the lists of revoked certificates in the file. From then on each certificate needs one.
void add_revocations(X509_STORE& store, const std::string& path) {
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  if (!file) refuse_by_openssl("revocations", path, "cannot be read");
  int count = 0;
  while (const CrlPtr list{PEM_read_bio_X509_CRL(file.get(), nullptr, &no_passphrase, nullptr)}) {
    if (X509_STORE_add_crl(&store, list.get()) != 1) throw std::bad_alloc();
    ++count;
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (count == 0 || !at_end) {
    refuse_by_openssl("revocations", path,
                      "has no list of revoked certificates (PEM), or a bad one");
  }
  ERR_clear_error();
  X509_STORE_set_flags(&store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
}

using Stamps = std::array<FileStamp, 4>;

Stamps stamps_of(const SecurityOptions& options) {
  return {FileStamp::of(options.certificate), FileStamp::of(options.key),
          FileStamp::of(options.authority), FileStamp::of(options.revocations)};
}

class CertificateCredentials final : public Credentials {
 public:
  CertificateCredentials(const SecurityOptions& options, Owner owner)
      : options_(options), owner_(std::move(owner)), stamps_(stamps_of(options)) {
    state_ = load();
  }

  [[nodiscard]] ContextPtr context() const override { return state().context; }

  [[nodiscard]] ProvenPeer prove(SSL& ssl) const override {
    ProvenPeer peer;
    peer.certificate.reset(SSL_get1_peer_certificate(&ssl), &X509_free);
    if (!peer.certificate) throw PermissionDenied("the peer has no certificate");
    STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(&ssl);
    if (chain != nullptr) {
      peer.chain.reset(X509_chain_up_ref(chain),
                       [](STACK_OF(X509) * list) { sk_X509_pop_free(list, &X509_free); });
    }
    CertificateName name = name_of(*peer.certificate);
    const std::string domain = state().name.domain;
    if (name.domain != domain) {
      throw PermissionDenied("the peer's certificate " + name.proof.identity +
                             " is of another trust domain than this node's, '" + domain + "'");
    }
    peer.proof = std::make_shared<const PeerProof>(std::move(name.proof));
    return peer;
  }

  [[nodiscard]] std::error_code explain(SSL& /*ssl*/, std::error_code error) const override {
    return error;
  }

  [[nodiscard]] std::optional<News> look() override {
    const Stamps now = stamps_of(options_);
    if (now == stamps_) return std::nullopt;
    stamps_ = now;
    try {
      State loaded = load();
      const std::lock_guard lock(mutex_);
      state_ = std::move(loaded);
      return News{.line =
                      "loaded the certificates again; this node is " + state_.name.proof.identity};
    } catch (const Error& error) {
      return News{
          .line = std::string(error.what()) + "; the certificates loaded before stay in use",
          .is_bad = true};
    }
  }

  [[nodiscard]] std::optional<std::chrono::seconds> time_left() const override {
    const ContextPtr context = state().context;
    int days = 0;
    int seconds = 0;
    const X509* const own = SSL_CTX_get0_certificate(context.get());
    if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(own)) != 1) return std::nullopt;
    return std::chrono::hours(24) * days + std::chrono::seconds(seconds);
  }

  [[nodiscard]] std::error_code check_again(const ProvenPeer& peer, bool anew) const override {
    if (X509_cmp_current_time(X509_get0_notAfter(peer.certificate.get())) <= 0)
      return TlsError::expired;
    if (!anew) return {};
    using Verification = std::unique_ptr<X509_STORE_CTX, FreeBy<&X509_STORE_CTX_free>>;
    const Verification verification(X509_STORE_CTX_new());
    const ContextPtr context = state().context;
    X509_STORE* const store = SSL_CTX_get_cert_store(context.get());
    if (!verification || X509_STORE_CTX_init(verification.get(), store, peer.certificate.get(),
                                             peer.chain.get()) != 1) {
      throw std::bad_alloc();
    }
    const int result = X509_verify_cert(verification.get());
    ERR_clear_error();
    if (result == 1) return {};
    return verify_error(X509_STORE_CTX_get_error(verification.get()));
  }

 private:
  struct State {
    ContextPtr context{};
    CertificateName name{};
  };

  [[nodiscard]] State state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  [[nodiscard]] State load() const {
    ERR_clear_error();
    check_readable("certificate", options_.certificate);
    check_readable("key", options_.key);
    check_readable("authority", options_.authority);
    check_readable("revocations", options_.revocations);
    State made{.context = new_context()};
    SSL_CTX* const context = made.context.get();
    if (SSL_CTX_use_certificate_chain_file(context, options_.certificate.c_str()) != 1)
      refuse_by_openssl("certificate", options_.certificate,
                        "cannot be read as a certificate (PEM)");
    check_private(options_.key);
    if (SSL_CTX_use_PrivateKey_file(context, options_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
      refuse_by_openssl(
          "key", options_.key,
          "cannot be read as the private key (PEM) that belongs to " + options_.certificate);
    }
    if (SSL_CTX_load_verify_locations(context, options_.authority.c_str(), nullptr) != 1)
      refuse_by_openssl("authority", options_.authority, "cannot be read as certificates (PEM)");
    if (!options_.revocations.empty())
      add_revocations(*SSL_CTX_get_cert_store(context), options_.revocations);
    try {
      made.name = name_of(*SSL_CTX_get0_certificate(context));
    } catch (const PermissionDenied& error) {
      refuse("certificate", options_.certificate, std::string("cannot be used: ") + error.what());
    }
    const X509* const own = SSL_CTX_get0_certificate(context);
    if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0)
      refuse("certificate", options_.certificate, "is not valid yet; compare the clocks");
    if (X509_cmp_current_time(X509_get0_notAfter(own)) <= 0)
      refuse("certificate", options_.certificate, "has expired; renew it");
    if (!made.name.proof.covers(owner_.name, owner_.job)) {
      refuse("certificate", options_.certificate,
             "is for " + made.name.proof.identity + ", not for the node '" + owner_.name +
                 "' of the job '" + owner_.job + "' (NodeOptions::name and job)");
    }
    return made;
  }

  const SecurityOptions options_;
  const Owner owner_;
  Stamps stamps_;  // used by one thread at a time

  mutable std::mutex mutex_;  // guards state_
  State state_;
};

}  // namespace

std::shared_ptr<Credentials> certificate_credentials(const SecurityOptions& options,
                                                     const Owner& owner) {
  return std::make_shared<CertificateCredentials>(options, owner);
}

}  // namespace batchrpc::tls
