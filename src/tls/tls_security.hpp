#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log_limit.hpp"
#include "base/random_bits.hpp"
#include "batchrpc/base/log.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/security.hpp"
#include "tls/credentials.hpp"
#include "tls/handshake.hpp"
#include "tls/off_loop.hpp"
#include "tls/tls_stream.hpp"

namespace batchrpc::tls {

/// Secures streams by TLS 1.3 (docs/security.md). At most 64 accepted handshakes are under way, 32
/// of them with one other host, for 5 s each. When all places are taken, a random one loses its
/// place.
class TlsSecurity final : public StreamSecurity, public std::enable_shared_from_this<TlsSecurity> {
 public:
  /// Makes the credentials when they are first needed. Throws InvalidArgument.
  using MakeCredentials = std::function<std::shared_ptr<Credentials>()>;

  struct Parts {
    std::shared_ptr<Loop> loop{};
    Log log{};
    MakeCredentials make_credentials{};
    std::string refusal{};  ///< why no credentials can be made; empty: they can, as far as known
    bool reaches_other_hosts = true;
    bool can_change = false;  ///< whether the credentials are looked at every second
  };

  explicit TlsSecurity(Parts parts);
  ~TlsSecurity() override;

  /// Looks at the files every second from now on, if they can change.
  void watch();

  [[nodiscard]] std::string refusal(bool beyond_this_host) const override;
  [[nodiscard]] std::optional<std::chrono::seconds> certificate_time_left() const override;
  void connect(std::unique_ptr<Stream> stream, TimePoint deadline, ConnectHandler handler) override;
  void accept(std::unique_ptr<Stream> stream, AcceptHandler handler) override;

 private:
  struct UnderWay {
    std::shared_ptr<Handshake> handshake;
    std::string accepted_from{};  // the host; empty if this node has connected
    TimerId timer = 0;
  };
  using Number = std::uint64_t;

  struct Open {
    std::shared_ptr<StreamEnding> ending;
    ProvenPeer peer;
    std::string description;
    bool is_new = true;  // may have been proved by credentials that were replaced meanwhile
  };

  [[nodiscard]] std::shared_ptr<Credentials> credentials();
  void begin(std::unique_ptr<Stream> stream, std::string accepted_from, TimePoint deadline,
             ConnectHandler handler);
  [[nodiscard]] std::shared_ptr<Handshake> take(Number number);
  void make_room(const std::string& host);
  void finished(Number number, Handshake::Outcome outcome, ConnectHandler& handler);
  void report(const std::string& peer, std::error_code error, const std::string& why,
              bool accepted);
  void look();
  void check_open(const Credentials& current, bool anew);

  const Parts parts_;
  const std::shared_ptr<OffLoop> threads_ = std::make_shared<OffLoop>();

  mutable std::mutex mutex_;                  // guards what follows
  std::shared_ptr<Credentials> credentials_;  // null until they are needed
  std::map<Number, UnderWay> under_way_;
  RandomBits random_{0};
  Number next_ = 1;
  std::vector<Open> open_;
  bool watched_ = false;
  std::map<std::pair<bool, int>, LogLimit> limits_;  // by whether it was accepted, and the reason
};

}  // namespace batchrpc::tls
