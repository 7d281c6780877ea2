#include "tls/records.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace batchrpc::tls {

// OpenSSL's view of the memory: a BIO that reads the input and appends to the output.
struct RecordBio {
  static Records& of(BIO* bio) noexcept { return *static_cast<Records*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, int size) noexcept {
    Records& records = of(bio);
    BIO_clear_retry_flags(bio);
    if (records.input_.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t count =
        std::min(records.input_.size(), static_cast<std::size_t>(std::max(size, 0)));
    std::memcpy(to, records.input_.data(), count);
    records.input_ = records.input_.subspan(count);
    return static_cast<int>(count);
  }

  static int write(BIO* bio, const char* from, int size) noexcept {
    BIO_clear_retry_flags(bio);
    if (size <= 0) return 0;
    const auto bytes = std::as_bytes(std::span(from, static_cast<std::size_t>(size)));
    try {
      std::vector<std::byte>& output = of(bio).output_;
      output.insert(output.end(), bytes.begin(), bytes.end());
    } catch (const std::bad_alloc&) {
      return -1;
    }
    return size;
  }

  // NOLINTNEXTLINE(google-runtime-int): OpenSSL's type
  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) noexcept {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static int create(BIO* bio) noexcept {
    BIO_set_init(bio, 1);
    return 1;
  }

  static const BIO_METHOD* method() {
    static BIO_METHOD* const only = [] {
      BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "records");
      if (made == nullptr || BIO_meth_set_read(made, &read) != 1 ||
          BIO_meth_set_write(made, &write) != 1 || BIO_meth_set_ctrl(made, &control) != 1 ||
          BIO_meth_set_create(made, &create) != 1) {
        throw std::bad_alloc();
      }
      return made;
    }();
    return only;
  }
};

Records::Records(const ContextPtr& context, bool is_server) : ssl_(SSL_new(context.get())) {
  BioPtr bio(BIO_new(RecordBio::method()));
  if (!ssl_ || !bio) throw std::bad_alloc();
  BIO_set_data(bio.get(), this);
  BIO* const both = bio.release();
  SSL_set_bio(ssl_.get(), both, both);
  if (is_server) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

Records::~Records() = default;

}  // namespace batchrpc::tls
