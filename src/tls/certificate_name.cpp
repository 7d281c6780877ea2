#include "tls/certificate_name.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/plain_text.hpp"
#include "batchrpc/base/error.hpp"
#include "tls/openssl_pointers.hpp"

namespace batchrpc::tls {
namespace {

constexpr std::string_view kUriScheme = "spiffe://";
constexpr std::string_view kDnsIdentity = "dns:";
constexpr std::size_t kMostNameBytes = 255;  // as of NodeOptions::name
constexpr std::size_t kMostUriBytes = 2048;  // by the SPIFFE ID standard
constexpr std::size_t kMostDnsBytes = 253;   // RFC 1035, without the dot at the end
constexpr std::size_t kMostLabelBytes = 63;
constexpr std::size_t kMostShownBytes = 300;

bool is_lower_or_digit(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
char lower_of(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), lower_of);
  return lower;
}

std::string shown(std::string_view name) { return "'" + escaped(name, kMostShownBytes) + "'"; }

[[noreturn]] void refuse_uri(std::string_view uri, const std::string& why) {
  throw PermissionDenied("the certificate's URI " + shown(uri) + ' ' + why +
                         "; expected spiffe://DOMAIN/job/JOB/node/NAME");
}
[[noreturn]] void refuse_dns(std::string_view dns, const std::string& why) {
  throw PermissionDenied(
      "the certificate's DNS name " + shown(dns) + ' ' + why +
      "; expected a name such as worker1.example.org; for several nodes, use a URI");
}
[[noreturn]] void refuse_certificate(const std::string& why) {
  throw PermissionDenied("the certificate " + why +
                         "; expected one subject alternative name that is the URI "
                         "spiffe://DOMAIN/job/JOB/node/NAME, or one that is a DNS name");
}

/// What is wrong with any name, whatever its kind.
std::optional<std::string> fault_of_text(std::string_view text, std::size_t most_bytes) {
  if (text.empty()) return "is empty";
  if (text.size() > most_bytes) return "has more than " + std::to_string(most_bytes) + " bytes";
  if (text.find('\0') != std::string_view::npos) return "contains a NUL byte";
  if (!is_plain_text(text)) return "is not UTF-8 without control characters";
  return std::nullopt;
}

std::optional<std::string> fault_of_domain(std::string_view domain) {
  if (domain.empty()) return "has no domain";
  if (domain.size() > kMostNameBytes) return "has a domain of more than 255 bytes";
  if (domain.find('@') != std::string_view::npos) return "has a user";
  if (domain.find(':') != std::string_view::npos) return "has a port";
  const auto may_be = [](char c) {
    return is_lower_or_digit(c) || c == '.' || c == '-' || c == '_';
  };
  if (!std::all_of(domain.begin(), domain.end(), may_be))
    return "has a domain with other characters than a-z, 0-9, '.', '-' and '_'";
  if (domain.front() == '.' || domain.back() == '.' || domain.find("..") != std::string_view::npos)
    return "has a domain with an empty label";
  return std::nullopt;
}

/// Whether a segment of a path may have this character as it is (RFC 3986, pchar).
bool is_path_character(char c) noexcept {
  constexpr std::string_view kOthers = "-._~!$&'()*+,;=:@";
  return is_lower_or_digit(lower_of(c)) || kOthers.find(c) != std::string_view::npos;
}

/// The value of a hexadecimal digit; none if it is not one.
std::optional<unsigned> digit_of(char c) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t value = kDigits.find(lower_of(c));
  if (value == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(value);
}

/// A job or a node's name, of a segment of a URI.
std::string decoded(std::string_view uri, std::string_view segment, const std::string& what) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const char c = segment[i];
    if (c != '%') {
      if (!is_path_character(c))
        refuse_uri(uri, "has a character in its " + what + " that must be percent-encoded");
      text += c;
      continue;
    }
    const auto high = i + 1 < segment.size() ? digit_of(segment[i + 1]) : std::nullopt;
    const auto low = i + 2 < segment.size() ? digit_of(segment[i + 2]) : std::nullopt;
    if (!high || !low) refuse_uri(uri, "has a '%' without two hexadecimal digits in its " + what);
    const char byte = static_cast<char>(*high << 4 | *low);
    if (byte == '*' || byte == '?')
      refuse_uri(uri, "encodes a '*' or '?' in its " + what + ", which cannot stand for itself");
    text += byte;
    i += 2;
  }
  if (text == "." || text == "..") refuse_uri(uri, "has the " + what + " '" + text + "'");
  if (const auto fault = fault_of_text(text, kMostNameBytes))
    refuse_uri(uri, "has a " + what + " that " + *fault);
  return text;
}

/// The parts of a path behind its first slash. More than five are one too many, whatever they are.
std::array<std::string_view, 5> segments_of(std::string_view path, std::size_t& count) {
  std::array<std::string_view, 5> segments{};
  for (count = 0; count < segments.size();) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    segments[count++] = path.substr(0, slash);
    if (slash == path.size()) break;
    path.remove_prefix(slash + 1);
  }
  return segments;
}

void require_label(std::string_view dns, std::string_view label) {
  if (label.empty()) refuse_dns(dns, "has an empty label");
  if (label.size() > kMostLabelBytes) refuse_dns(dns, "has a label of more than 63 bytes");
  if (label.find('*') != std::string_view::npos) refuse_dns(dns, "has a wildcard");
  const auto may_be = [](char c) { return is_lower_or_digit(lower_of(c)) || c == '-' || c == '_'; };
  if (!std::all_of(label.begin(), label.end(), may_be))
    refuse_dns(dns, "has other characters than letters, digits, '-', '_' and dots");
  if (label.front() == '-' || label.back() == '-')
    refuse_dns(dns, "has a label that begins or ends with '-'");
}

std::string_view bytes_in(const ASN1_STRING* text) noexcept {
  const int length = ASN1_STRING_length(text);
  if (length <= 0) return {};
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(length)};
}

NamesPtr alternative_names(const X509& certificate) {
  int critical = 0;
  NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, &critical, nullptr)));
  if (names) return names;
  (void)take_openssl_error();  // who looks for errors later must not find this one
  if (critical == -1) refuse_certificate("has no subject alternative name");
  if (critical == -2) refuse_certificate("has two extensions with subject alternative names");
  refuse_certificate("has subject alternative names that cannot be read");
}

}  // namespace

CertificateName parse_uri_name(std::string_view uri) {
  if (const auto fault = fault_of_text(uri, kMostUriBytes)) refuse_uri(uri, *fault);
  if (!uri.starts_with(kUriScheme)) refuse_uri(uri, "has another scheme");
  if (uri.find('?') != std::string_view::npos) refuse_uri(uri, "has a query");
  if (uri.find('#') != std::string_view::npos) refuse_uri(uri, "has a fragment");
  std::string_view path = uri.substr(kUriScheme.size());
  const std::string_view domain = path.substr(0, path.find('/'));
  if (const auto fault = fault_of_domain(domain)) refuse_uri(uri, *fault);
  path.remove_prefix(domain.size());
  if (path.empty()) refuse_uri(uri, "has no path");
  path.remove_prefix(1);

  std::size_t count = 0;
  const auto segments = segments_of(path, count);
  for (const std::string_view segment : std::span(segments).first(count)) {
    if (segment.empty()) refuse_uri(uri, "has an empty segment");
    if (segment == "." || segment == "..") refuse_uri(uri, "has a segment '.' or '..'");
  }
  if (count != 4 || segments[0] != "job" || segments[2] != "node")
    refuse_uri(uri, "has another path");
  return {.domain = std::string(domain),
          .proof = {.identity = std::string(uri),
                    .job = decoded(uri, segments[1], "job"),
                    .name = decoded(uri, segments[3], "node's name")}};
}

CertificateName parse_dns_name(std::string_view dns) {
  if (const auto fault = fault_of_text(dns, kMostDnsBytes)) refuse_dns(dns, *fault);
  std::string_view rest = dns;
  while (true) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    require_label(dns, rest.substr(0, dot));
    if (dot == rest.size()) break;
    rest.remove_prefix(dot + 1);
  }
  const std::string name = lower_case(dns);
  return {.domain = {},
          .proof = {.identity = std::string(kDnsIdentity) + name, .job = "*", .name = name}};
}

CertificateName name_of(const X509& certificate) {
  const NamesPtr names = alternative_names(certificate);
  std::optional<std::string_view> uri;
  std::optional<std::string_view> dns;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI && name->type != GEN_DNS) continue;
    if (uri || dns) refuse_certificate("has two names or more (URIs, DNS names)");
    (name->type == GEN_URI ? uri : dns) = bytes_in(name->d.ia5);
  }
  if (uri) return parse_uri_name(*uri);
  if (dns) return parse_dns_name(*dns);
  refuse_certificate("has neither a URI nor a DNS name");
}

}  // namespace batchrpc::tls
