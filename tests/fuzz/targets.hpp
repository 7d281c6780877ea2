#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

/// The fuzz targets: each is the file and the program of its name (scripts/fuzz.sh), and has a
/// folder in corpus/. To add one is to add the three, and a line here. A core without TLS has
/// neither certificate_name nor tls_records.
namespace batchrpc::fuzz {

using Input = std::span<const std::byte>;

void certificate_name(Input input);
void codec(Input input);
void connection(Input input);
void frame(Input input);
void session(Input input);
void tensor(Input input);
void tls_records(Input input);

struct Target {
  const char* name;
  void (*run)(Input input);
};
inline constexpr Target kTargets[] = {
#ifdef BATCHRPC_HAS_TLS
    {"certificate_name", certificate_name},
    {"tls_records", tls_records},
#endif
    {"codec", codec},
    {"connection", connection},
    {"frame", frame},
    {"session", session},
    {"tensor", tensor}};

/// What a target finds wrong. It is caught by none: so libFuzzer keeps the input.
inline void require(bool right, const std::string& what) {
  if (!right) throw std::logic_error("fuzz: " + what);
}

}  // namespace batchrpc::fuzz
