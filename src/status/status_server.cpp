#include "batchrpc/status/status_server.hpp"

#include <utility>

#include "base/system_ids.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/node/status_page.hpp"
#include "status/access.hpp"
#include "status/channel.hpp"
#include "status/http_answer.hpp"
#include "status/http_server.hpp"
#include "status/status_content.hpp"

namespace batchrpc {
namespace {

// Options that have been checked, with what they name.
struct Plan {
  explicit Plan(const StatusOptions& options)
      : address(status::ListenAddress::parse(options.address)),
        access(options.token),
        is_encrypted(!options.certificate.empty()) {
    if (options.certificate.empty() != options.key.empty()) {
      throw InvalidArgument(
          "a status page by TLS needs a certificate and its key: set both of "
          "StatusOptions::certificate and StatusOptions::key, or none");
    }
    if (is_encrypted) channels = status::tls_channels(options.certificate, options.key);
  }

  // Listens, if the address may be used with these options.
  [[nodiscard]] status::Listener listen() const {
    status::Listener listener = status::listen_at(address);
    if (listener.is_loopback || (!access.is_open() && is_encrypted)) return listener;
    std::string missing = access.is_open() ? "a token (StatusOptions::token)" : "";
    if (!is_encrypted) {
      missing += missing.empty() ? "" : " and ";
      missing += "a certificate with its key (StatusOptions::certificate and key";
      missing +=
          status::has_tls() ? ")" : "; this build of batchrpc has no TLS: it needs OpenSSL 3)";
    }
    throw InvalidArgument("the status page is not served at " + address.to_string() +
                          ": beyond loopback it needs " + missing +
                          "; set that, or use 127.0.0.1 and an SSH tunnel");
  }

  status::ListenAddress address;
  status::Access access;
  bool is_encrypted;
  status::Channels channels = status::plain_channel;
};

// A server and its content. A child of fork() does not have its threads and leaves it alone:
// another thread may have held any of its locks.
class Service {
 public:
  Service(std::weak_ptr<NodeCore> node, const Plan& plan)
      : Service(std::move(node), plan, plan.listen()) {}
  ~Service() {
    if (is_forked_copy()) {
      (void)server_.release();
    } else {
      stop();
    }
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void stop() {
    if (is_forked_copy()) return;
    content_->stop();
    server_->stop();
  }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }

 private:
  Service(std::weak_ptr<NodeCore> node, const Plan& plan, status::Listener listener)
      : content_(std::make_shared<status::StatusContent>(
            std::move(node), plan.access, listener.is_loopback ? listener.address.host : "")),
        server_(std::make_unique<status::HttpServer>(std::move(listener), answer_with(content_),
                                                     status::HttpLimits{}, plan.channels)),
        address_((plan.is_encrypted ? "https://" : "http://") + server_->address().to_string()) {}

  static status::HttpServer::Answer answer_with(
      const std::shared_ptr<status::StatusContent>& content) {
    const auto http = std::make_shared<status::HttpAnswerer>(
        [content](const status::HttpRequest& request) { return content->answer(request); });
    return [http](std::string_view head, const status::ClientGone& is_gone) {
      return http->answer(head, is_gone);
    };
  }
  [[nodiscard]] bool is_forked_copy() const noexcept { return process_ != process_number(); }

  const std::uint64_t process_ = process_number();
  const std::shared_ptr<status::StatusContent> content_;
  std::unique_ptr<status::HttpServer> server_;
  const std::string address_;
};

class NodesPage final : public detail::StatusPage {
 public:
  NodesPage(const std::shared_ptr<NodeCore>& node, const Plan& plan) : service_(node, plan) {}
  [[nodiscard]] std::string address() const override { return service_.address(); }

 private:
  Service service_;
};

class PageFactory final : public detail::StatusPageFactory {
 public:
  explicit PageFactory(const StatusOptions& options) : plan_(options) {}
  [[nodiscard]] std::unique_ptr<detail::StatusPage> open(
      const std::shared_ptr<NodeCore>& node) const override {
    return std::make_unique<NodesPage>(node, plan_);
  }

 private:
  const Plan plan_;
};

}  // namespace

std::shared_ptr<const detail::StatusPageFactory> status_page(const StatusOptions& options) {
  return std::make_shared<const PageFactory>(options);
}

class StatusServer::Parts {
 public:
  Parts(const Node& node, const StatusOptions& options)
      : service(detail::NodeAccess::core(node), Plan(options)) {}
  Service service;
};

StatusServer::StatusServer(const Node& node, const StatusOptions& options)
    : parts_(std::make_unique<Parts>(node, options)) {}

StatusServer::~StatusServer() = default;

std::string StatusServer::address() const { return parts_->service.address(); }

void StatusServer::stop() { parts_->service.stop(); }

}  // namespace batchrpc
