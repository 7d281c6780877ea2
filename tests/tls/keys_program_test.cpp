#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "child.hpp"
#include "tls/certificate_name.hpp"
#include "tls/openssl_pointers.hpp"

#include <openssl/pem.h>

// The program batchrpc-keys, as people start it.

namespace batchrpc::tls {
namespace keys_program_test {

/// A folder of a test's own.
class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "batchrpc_keys_XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder for a test");
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] unsigned mode(const std::string& name) const {
    struct stat found {};
    return ::stat(file(name).c_str(), &found) == 0 ? found.st_mode & 0777U : 0U;
  }
  [[nodiscard]] CertificatePtr certificate(const std::string& name) const {
    const BioPtr bio(BIO_new_file(file(name).c_str(), "r"));
    return CertificatePtr(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  }
  [[nodiscard]] int revoked() const {
    const BioPtr bio(BIO_new_file(file("keys/crl.pem").c_str(), "r"));
    const CrlPtr list(PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr));
    return list ? std::max(0, sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list.get()))) : -1;
  }

 private:
  std::filesystem::path path_;
};

struct Answer {
  int status;
  std::string output;
};
Answer keys(batchrpc::test::Child::Words words) {
  words.insert(words.begin(), "batchrpc-keys");
  batchrpc::test::Child child(std::move(words));
  child.close_input();
  const int status = child.wait();
  return {status, child.output()};
}
void require_done(const Answer& answer) {
  INFO(answer.output);
  REQUIRE(answer.status == 0);
  CHECK_THAT(answer.output, Catch::StartsWith("wrote ") && Catch::Contains("\nnext: "));
}
void check_refused(const Answer& answer, const std::string& why) {
  CHECK(answer.status == 1);
  CHECK_THAT(answer.output, Catch::StartsWith("batchrpc-keys: ") && Catch::Contains(why));
}

TEST_CASE("batchrpc-keys writes a token that only its owner reads, once") {
  const Folder folder;
  require_done(keys({"token", folder.file("token")}));
  const std::string token = folder.text("token");
  CHECK(token.size() == 65);
  CHECK(folder.mode("token") == 0600);
  check_refused(keys({"token", folder.file("token")}), "exists already");
  CHECK(folder.text("token") == token);
  check_refused(keys({"token", folder.file("none/token")}), "cannot be written: No such file");
}

TEST_CASE("batchrpc-keys makes an authority, and certificates of nodes that it signs") {
  const Folder folder;
  const std::string at = folder.file("keys");
  require_done(keys({"authority", at}));
  require_done(keys({"node", at, "worker*", "--job", "run 1", "--domain", "example.org"}));
  require_done(keys({"node", at, "root", "--days", "7"}));
  CHECK(folder.mode("keys/ca.key") == 0600);
  CHECK(folder.mode("keys/root.key") == 0600);
  CHECK(folder.mode("keys/worker_.key") == 0600);
  const CertificatePtr ca = folder.certificate("keys/ca.pem");
  const CertificatePtr worker = folder.certificate("keys/worker_.pem");
  REQUIRE(ca);
  REQUIRE(worker);
  CHECK(X509_verify(worker.get(), X509_get0_pubkey(ca.get())) == 1);
  CHECK(name_of(*worker).proof.identity == "spiffe://example.org/job/run%201/node/worker*");
  CHECK(name_of(*worker).proof.covers("worker7", "run 1"));
  const CertificatePtr root = folder.certificate("keys/root.pem");
  REQUIRE(root);
  CHECK(name_of(*root).proof.identity == "spiffe://batchrpc/job/*/node/root");
}

TEST_CASE("batchrpc-keys overwrites no key and no certificate") {
  const Folder folder;
  const std::string at = folder.file("keys");
  require_done(keys({"authority", at}));
  require_done(keys({"node", at, "root"}));
  const std::string ca = folder.text("keys/ca.key");
  const std::string root = folder.text("keys/root.key");
  check_refused(keys({"authority", at}), "ca.key exists already");
  check_refused(keys({"node", at, "root"}), "root.key exists already");
  CHECK(folder.text("keys/ca.key") == ca);
  CHECK(folder.text("keys/root.key") == root);
  std::filesystem::remove(folder.file("keys/root.key"));
  check_refused(keys({"node", at, "root"}), "root.pem exists already");
  CHECK(folder.mode("keys/root.key") == 0);  // it is not there
}

TEST_CASE("batchrpc-keys renews a node's certificate, and only one that is there") {
  const Folder folder;
  const std::string at = folder.file("keys");
  require_done(keys({"authority", at}));
  check_refused(keys({"renew", at, "root"}), "root.pem does not exist");
  require_done(keys({"node", at, "root"}));
  const std::string key = folder.text("keys/root.key");
  const CertificatePtr first = folder.certificate("keys/root.pem");
  require_done(keys({"renew", at, "root", "--job", "run2"}));
  CHECK(folder.text("keys/root.key") != key);
  CHECK(folder.mode("keys/root.key") == 0600);
  const CertificatePtr renewed = folder.certificate("keys/root.pem");
  REQUIRE(renewed);
  CHECK(name_of(*renewed).proof.identity == "spiffe://batchrpc/job/run2/node/root");
  REQUIRE(first);
  CHECK(X509_cmp(renewed.get(), first.get()) != 0);
}

TEST_CASE("batchrpc-keys renews a certificate with the name, job and domain that it had") {
  const Folder folder;
  const std::string at = folder.file("keys");
  require_done(keys({"authority", at}));
  require_done(keys({"node", at, "actor*", "--job", "run 1", "--domain", "example.org"}));
  check_refused(keys({"renew", at, "actor_"}), "'spiffe://example.org/job/run%201/node/actor*'");
  require_done(keys({"renew", at, "actor*"}));
  const CertificatePtr renewed = folder.certificate("keys/actor_.pem");
  REQUIRE(renewed);
  CHECK(name_of(*renewed).proof.identity == "spiffe://example.org/job/run%201/node/actor*");
}

TEST_CASE("the certificate that batchrpc-keys has renewed can still be revoked") {
  const Folder folder;
  const std::string at = folder.file("keys");
  require_done(keys({"authority", at}));
  require_done(keys({"node", at, "root"}));
  const std::string first = folder.text("keys/root.pem");
  const Answer renewed = keys({"renew", at, "root"});
  require_done(renewed);
  const std::size_t kept = renewed.output.find(at + "/root.", renewed.output.find("revoke "));
  REQUIRE(kept != std::string::npos);
  const std::string file = renewed.output.substr(kept, renewed.output.find('\n', kept) - kept);
  const Answer latest = keys({"revoke", at, "root"});
  require_done(latest);
  CHECK_THAT(latest.output, Catch::Contains("revoked " + at + "/root.pem\n") &&
                                Catch::Contains("note: " + file + " is an earlier certificate"));
  require_done(keys({"revoke", at, file}));
  CHECK(folder.revoked() == 2);
  CHECK(folder.text(file.substr(file.find("keys/"))) == first);
}

TEST_CASE("batchrpc-keys writes an empty list of revoked certificates to begin with") {
  const Folder folder;
  const std::string at = folder.file("keys");
  require_done(keys({"authority", at}));
  require_done(keys({"revoke", at}));
  CHECK(folder.revoked() == 0);
  CHECK(folder.mode("keys/crl.pem") == 0644);
}

TEST_CASE("batchrpc-keys revokes certificates, and keeps those revoked before") {
  const Folder folder;
  const std::string at = folder.file("keys");
  require_done(keys({"authority", at}));
  for (const char* name : {"a", "b", "c"})
    require_done(keys({"node", at, name}));
  require_done(keys({"revoke", at, at + "/a.pem"}));
  CHECK(folder.revoked() == 1);
  require_done(keys({"revoke", at, "b", at + "/a.pem"}));
  CHECK(folder.revoked() == 2);
  check_refused(keys({"revoke", at, at + "/c.pem", at + "/ca.pem"}), "ca.pem cannot be revoked");
  check_refused(keys({"revoke", at, at + "/none.pem"}), "cannot be read");
  check_refused(keys({"revoke", at, "none"}), at + "/none.pem cannot be read");
  check_refused(keys({"revoke", at, "ca"}), "the authority's own files");
  CHECK(folder.revoked() == 2);
}

TEST_CASE("batchrpc-keys refuses names that cannot be, and says why") {
  const Folder folder;
  const std::string at = folder.file("keys");
  check_refused(keys({"node", at, "root"}), "there is no authority in");
  require_done(keys({"authority", at}));
  check_refused(keys({"node", at, "../root"}), "has a slash");
  check_refused(keys({"node", at, "crl"}), "the authority's own files");
  check_refused(keys({"node", at, "a?"}), "encodes a '*' or '?'");
  check_refused(keys({"node", at, "a\nb"}), "control characters");
  check_refused(keys({"node", at, "a", "--domain", "UPPER"}), "has a domain with other characters");
  check_refused(keys({"node", at, "a", "--domain", "a/b"}), "has another path");
}

TEST_CASE("batchrpc-keys shows its usage when it is used wrongly") {
  const auto check_usage = [](const Answer& answer, const std::string& why) {
    CHECK(answer.status == 2);
    CHECK_THAT(answer.output, Catch::Contains(why) && Catch::Contains("usage: batchrpc-keys"));
  };
  check_usage(keys({}), "usage");
  check_usage(keys({"colour"}), "there is no command colour");
  check_usage(keys({"token"}), "an argument is missing");
  check_usage(keys({"token", ""}), "an argument is empty");
  check_usage(keys({"node", "a", "b", "c"}), "too many arguments");
  CHECK_THAT(keys({"node", "a", "b", "c"}).output,
             Catch::EndsWith("usage: batchrpc-keys node FOLDER NAME [--job JOB] [--domain DOMAIN] "
                             "[--days N]\nrun batchrpc-keys --help for all commands\n"));
  check_usage(keys({"token", "a", "--days", "1"}), "has no option --days");
  check_usage(keys({"authority", "a", "--days"}), "--days needs a value");
  check_usage(keys({"authority", "a", "--days", "1", "--days", "2"}), "--days is there twice");
  for (const char* days : {"0", "-1", "36501", "1x", "", "99999999999999999999"})
    check_usage(keys({"authority", "a", "--days", days}), "from 1 to 36500");
  CHECK(keys({"--help"}).status == 0);
  CHECK(keys({"token", "--help"}).status == 0);
}

}  // namespace keys_program_test
}  // namespace batchrpc::tls
