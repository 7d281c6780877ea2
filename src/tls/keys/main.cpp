#include <algorithm>
#include <charconv>
#include <exception>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tls/keys/commands.hpp"

// batchrpc-keys: makes tokens, keys and certificates for nodes.

namespace batchrpc::keys {
namespace {

struct Command {
  std::string_view name;
  std::string_view arguments;
};
constexpr Command kCommands[] = {
    {"token", "FILE"},
    {"authority", "FOLDER [--days N]"},
    {"node", "FOLDER NAME [--job JOB] [--domain DOMAIN] [--days N]"},
    {"renew", "FOLDER NAME [--job JOB] [--domain DOMAIN] [--days N]"},
    {"revoke", "FOLDER [NAME | CERTIFICATE.pem]... [--days N]"},
};

constexpr std::string_view kHelp = R"(
token      writes a new join token to FILE
authority  writes ca.pem and ca.key: an authority that signs certificates (3650 days)
node       writes NAME.pem and NAME.key, signed by FOLDER's authority (365 days); in NAME and
           JOB, '*' stands for any characters, as in 'worker*'; the job is '*' and the domain
           "batchrpc" by default; in the names of the files, '*' and the like become '_'
renew      replaces the files of NAME, with the job and domain of the old certificate; nodes that
           use them load them by themselves; the old certificate is kept as NAME.SERIAL.pem, and
           is valid until its end, or until it is revoked
revoke     writes crl.pem, which has these certificates and those revoked before (3650 days);
           NAME stands for the certificate of that node in FOLDER

Nothing is overwritten, except by renew, and crl.pem.
)";

/// How the command is used; all commands if it is none of them.
std::string usage_of(std::string_view command) {
  const auto is_it = [&](const Command& known) { return known.name == command; };
  const bool is_known = std::any_of(std::begin(kCommands), std::end(kCommands), is_it);
  std::string text;
  for (const Command& known : kCommands) {
    if (is_known && !is_it(known)) continue;
    text += text.empty() ? "usage: batchrpc-keys " : "       batchrpc-keys ";
    text.append(known.name).append(" ").append(known.arguments).append("\n");
  }
  return text;
}

/// The user has not asked as usage_of() says. what() is a sentence, or empty.
class WrongUsage final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The words of the command line behind the command.
class Arguments {
 public:
  /// `options`: the options that the command has; each takes a value.
  Arguments(const std::vector<std::string>& words, const std::vector<std::string_view>& options) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (!word.starts_with("--")) {
        names_.push_back(word);
        continue;
      }
      bool is_known = false;
      for (const std::string_view option : options)
        is_known = is_known || word == option;
      if (!is_known) throw WrongUsage("this command has no option " + word);
      if (i + 1 == words.size()) throw WrongUsage(word + " needs a value");
      if (value_of(word)) throw WrongUsage(word + " is there twice");
      options_.push_back({word, words[++i]});
    }
  }

  /// The words that are no options; empty words count as missing.
  [[nodiscard]] const std::vector<std::string>& names(std::size_t least, std::size_t most) const {
    if (names_.size() < least) throw WrongUsage("an argument is missing");
    if (names_.size() > most) throw WrongUsage("there are too many arguments");
    for (const std::string& name : names_) {
      if (name.empty()) throw WrongUsage("an argument is empty");
    }
    return names_;
  }
  [[nodiscard]] std::string text(std::string_view option) const {
    return value_of(option).value_or("");
  }
  [[nodiscard]] int days(int otherwise) const {
    constexpr int kMostDays = 36500;
    const auto text = value_of("--days");
    if (!text) return otherwise;
    int days = 0;
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, days);
    if (error != std::errc() || at != end || days < 1 || days > kMostDays)
      throw WrongUsage("--days must be a number from 1 to 36500, but is '" + *text + "'");
    return days;
  }

 private:
  struct Option {
    std::string name;
    std::string value;
  };
  [[nodiscard]] std::optional<std::string> value_of(std::string_view name) const {
    for (const Option& option : options_) {
      if (option.name == name) return option.value;
    }
    return std::nullopt;
  }

  std::vector<std::string> names_{};
  std::vector<Option> options_{};
};

void run(const std::string& command, const std::vector<std::string>& words) {
  constexpr std::size_t kAnyNumber = static_cast<std::size_t>(-1);
  if (command == "token") {
    const Arguments arguments(words, {});
    write_token(arguments.names(1, 1)[0]);
  } else if (command == "authority") {
    const Arguments arguments(words, {"--days"});
    AuthorityWish wish;
    wish.folder = arguments.names(1, 1)[0];
    wish.days = arguments.days(wish.days);
    write_authority(wish);
  } else if (command == "node" || command == "renew") {
    const Arguments arguments(words, {"--days", "--domain", "--job"});
    NodeWish wish;
    wish.folder = arguments.names(2, 2)[0];
    wish.name = arguments.names(2, 2)[1];
    wish.job = arguments.text("--job");
    wish.domain = arguments.text("--domain");
    wish.days = arguments.days(wish.days);
    command == "renew" ? renew_node(wish) : write_node(wish);
  } else if (command == "revoke") {
    const Arguments arguments(words, {"--days"});
    const std::vector<std::string>& names = arguments.names(1, kAnyNumber);
    RevokeWish wish;
    wish.folder = names[0];
    wish.certificates.assign(names.begin() + 1, names.end());
    wish.days = arguments.days(wish.days);
    write_revocations(wish);
  } else {
    throw WrongUsage("there is no command " + command);
  }
}

int main_of(std::vector<std::string> words) {
  const std::string command = words.empty() ? "" : words[0];
  try {
    if (words.empty()) throw WrongUsage("");
    const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
    if (words[0] == "help" || std::any_of(words.begin(), words.end(), is_help)) {
      std::cout << usage_of("") << kHelp;
      return 0;
    }
    words.erase(words.begin());
    run(command, words);
    std::cout.flush();
    return 0;
  } catch (const WrongUsage& error) {
    const std::string what = error.what();
    if (!what.empty()) std::cerr << "batchrpc-keys: " << what << '\n';
    std::cerr << usage_of(command) << "run batchrpc-keys --help for all commands\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "batchrpc-keys: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace batchrpc::keys

int main(int argc, char** argv) {
  return batchrpc::keys::main_of(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
