#pragma once

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/schema-loader.h>
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/wire/encoder.hpp"

/// Cap'n Proto's own tool and reflection, to check the codec against.
namespace batchrpc::wire_test {

/// A file with this content, removed with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content) {
    std::string path = (std::filesystem::temp_directory_path() / "batchrpc-test-XXXXXX").string();
    const int descriptor = ::mkstemp(path.data());
    if (descriptor < 0) throw std::runtime_error("cannot make a temporary file");
    ::close(descriptor);
    path_ = path;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What the `capnp` tool prints, called with these arguments. Throws when it fails.
inline std::string capnp_tool(const std::string& arguments) {
  FILE* const pipe = ::popen((std::string(BATCHRPC_CAPNP_TOOL) + " " + arguments).c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start the capnp tool");
  std::string output;
  std::array<char, 65536> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), n);
  }
  if (::pclose(pipe) != 0) throw std::runtime_error("the capnp tool failed: " + arguments);
  return output;
}

/// Words as the bytes of a file.
inline std::string text_of(std::span<const Word> words) {
  return {reinterpret_cast<const char*>(words.data()), words.size_bytes()};
}

/// A segment in stream framing.
inline std::vector<Word> framed(std::span<const Word> segment) {
  std::vector<Word> words{Word{segment.size()} << 32};
  words.insert(words.end(), segment.begin(), segment.end());
  return words;
}

/// A schema compiled by the `capnp` tool.
class CompiledSchema {
 public:
  explicit CompiledSchema(std::string_view text) {
    const TemporaryFile file(text);
    const std::string request = capnp_tool("compile -o- " + file.path());
    words_.resize(request.size() / sizeof(Word));
    std::memcpy(words_.data(), request.data(), words_.size() * sizeof(Word));
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words_.data()), words_.size()));
    for (const auto node : reader.getRoot<capnp::schema::CodeGeneratorRequest>().getNodes()) {
      const auto schema = loader_.load(node);
      if (node.isStruct()) {
        const std::string name = node.getDisplayName().cStr();
        structs_.emplace_back(name.substr(name.rfind(':') + 1), schema.asStruct());
      }
    }
  }

  capnp::StructSchema at(std::string_view name) const {
    for (const auto& [known, schema] : structs_) {
      if (known == name) return schema;
    }
    throw std::out_of_range(std::string(name));
  }

 private:
  std::vector<Word> words_;
  capnp::SchemaLoader loader_;
  std::vector<std::pair<std::string, capnp::StructSchema>> structs_;
};

/// A message of one segment, read by Cap'n Proto.
class CapnpReader {
 public:
  explicit CapnpReader(std::span<const Word> segment, std::uint64_t traversal_words = 8 << 20)
      : segment_(
            kj::arrayPtr(reinterpret_cast<const capnp::word*>(segment.data()), segment.size())),
        reader_(kj::arrayPtr(&segment_, 1), {traversal_words, 64}) {}

  capnp::DynamicStruct::Reader root(capnp::StructSchema schema) {
    return reader_.getRoot<capnp::DynamicStruct>(schema);
  }

 private:
  kj::ArrayPtr<const capnp::word> segment_;
  capnp::SegmentArrayMessageReader reader_;
};

}  // namespace batchrpc::wire_test
