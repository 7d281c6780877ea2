#include "tls/join_token.hpp"

#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <system_error>
#include <vector>

#include "base/hex.hpp"
#include "base/random_bits.hpp"
#include "base/write_all.hpp"
#include "batchrpc/base/error.hpp"
#include "tls/make_certificate.hpp"
#include "tls/openssl_pointers.hpp"
#include "transport/owned_fd.hpp"

namespace batchrpc::tls {
namespace {

constexpr std::size_t kLeast = 32;
constexpr std::size_t kMost = 4096;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string error_text(int error) { return std::generic_category().message(error); }

void derive(std::string_view token, std::string_view purpose, std::span<unsigned char> out) {
  using Kdf = std::unique_ptr<EVP_KDF, FreeBy<&EVP_KDF_free>>;
  using Context = std::unique_ptr<EVP_KDF_CTX, FreeBy<&EVP_KDF_CTX_free>>;
  const Kdf kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const Context context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  std::string digest = "SHA256";
  std::string salt = "batchrpc join token 1";
  std::string secret(token);
  std::string info(purpose);
  const std::array<OSSL_PARAM, 5> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), digest.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  const bool good =
      context && EVP_KDF_derive(context.get(), out.data(), out.size(), parameters.data()) == 1;
  OPENSSL_cleanse(secret.data(), secret.size());
  if (!good) throw std::bad_alloc();
}

// Throws unless only the owner, this user, may read the file. `what` names it.
void check_private(const struct stat& found, const std::string& what) {
  if (found.st_uid != ::geteuid() && found.st_uid != 0) {
    throw InvalidArgument(what + " belongs to another user (" + std::to_string(found.st_uid) +
                          "); use a file of your own");
  }
  if ((found.st_mode & kOthers) != 0) {
    throw InvalidArgument(what + " can be read or written by others; run: chmod go= on it");
  }
}

std::string home_folder() {
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home != nullptr && *home == '/') return home;
  std::vector<char> memory(16 * 1024);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, memory.data(), memory.size(), &found) != 0 ||
      found == nullptr || found->pw_dir == nullptr) {
    return {};
  }
  return found->pw_dir;
}

// The folders in which the token of the user may be. The first one that can be used has it.
std::vector<std::string> folders_of_user() {
  std::vector<std::string> folders;
  if (const std::string home = home_folder(); !home.empty()) folders.push_back(home + "/.batchrpc");
  folders.push_back("/tmp/batchrpc-" + std::to_string(::geteuid()));
  return folders;
}

// Makes the folder, for this user alone. Returns why it cannot be used; empty if it can.
std::string make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return error_text(errno);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return error_text(errno);
  if (!S_ISDIR(found.st_mode)) return "it is not a folder";
  if (found.st_uid != ::geteuid()) return "it belongs to another user";
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others can write to it";
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) return error_text(errno);
  return {};
}

// Processes that do this at the same time agree on one file: it gets its name when it is complete,
// and only if no other has that name. Returns why it cannot be written; empty if it is there.
std::string make_token_file(const std::string& path) {
  const std::string draft = path + "." + hex(RandomBits()());
  const detail::OwnedFd file(::open(
      draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (file.get() < 0) return error_text(errno);
  std::string why;
  if (const int error = write_all(file.get(), make_token()); error != 0) {
    why = error_text(error);
  } else if (::fsync(file.get()) != 0 ||
             (::link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST)) {
    why = error_text(errno);
  }
  ::unlink(draft.c_str());
  return why;
}

}  // namespace

JoinKey derive_join_key(std::string_view token, std::string_view job, const std::string& source) {
  if (token.size() < kLeast) {
    throw InvalidArgument(source + " has " + std::to_string(token.size()) +
                          " bytes; a token needs at least 32 random ones. Make one by: "
                          "batchrpc-keys token FILE");
  }
  JoinKey made;
  derive(token, "key of job " + std::string(job), made.key);
  std::array<unsigned char, 16> name{};
  derive(token, "name of job " + std::string(job), name);
  made.identity = hex(std::span<const std::uint8_t>(name));
  return made;
}

std::string read_token_file(const std::string& path) {
  const std::string what = "the token file " + path;
  const detail::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) {
    const bool is_missing = errno == ENOENT;
    throw InvalidArgument(what + " cannot be read: " + error_text(errno) +
                          (is_missing ? ". Copy the group's token there; make the first one by: "
                                        "batchrpc-keys token " +
                                            path
                                      : ""));
  }
  if (!S_ISREG(found.st_mode)) throw InvalidArgument(what + " is not a file");
  check_private(found, what);
  std::string text(kMost + 1, '\0');
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) throw InvalidArgument(what + " cannot be read: " + error_text(errno));
  if (size > static_cast<ssize_t>(kMost)) {
    throw InvalidArgument(what + " has more than 4096 bytes; a token is shorter");
  }
  text.resize(static_cast<std::size_t>(size));
  constexpr std::string_view kSpace = " \t\r\n";
  text.erase(text.find_last_not_of(kSpace) + 1);
  text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  return text;
}

void check_token_of_user() {
  const std::string path = folders_of_user().front() + "/token";
  if (::access(path.c_str(), F_OK) != 0) return;
  (void)derive_join_key(read_token_file(path), {}, "the token file " + path);
}

std::string token_of_user() {
  std::string reasons;
  for (const std::string& folder : folders_of_user()) {
    std::string why = make_folder(folder);
    const std::string path = folder + "/token";
    if (why.empty() && ::access(path.c_str(), F_OK) != 0) why = make_token_file(path);
    if (why.empty()) return read_token_file(path);
    reasons += (reasons.empty() ? "" : "; ") + folder + ": " + why;
  }
  throw InvalidArgument("there is no folder for the token of this user (" + reasons +
                        "); set NodeOptions::security.token_file");
}

}  // namespace batchrpc::tls
