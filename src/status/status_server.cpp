#include "batchrpc/status/status_server.hpp"

#include <utility>

#include "base/system_ids.hpp"
#include "batchrpc/node/status_page.hpp"
#include "status/http_answer.hpp"
#include "status/http_server.hpp"
#include "status/status_content.hpp"

namespace batchrpc {
namespace {

// A server and its content. A child of fork() does not have its threads and leaves it alone:
// another thread may have held any of its locks.
class Service {
 public:
  Service(std::weak_ptr<NodeCore> node, const std::string& address)
      : content_(std::make_shared<status::StatusContent>(std::move(node))),
        server_(std::make_unique<status::HttpServer>(status::ListenAddress::parse(address),
                                                     answer_with(content_))),
        address_("http://" + server_->address().to_string()) {
    content_->listen(server_->address().host, server_->is_on_loopback());
  }
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
  NodesPage(const std::shared_ptr<NodeCore>& node, const std::string& address)
      : service_(node, address) {}
  [[nodiscard]] std::string address() const override { return service_.address(); }

 private:
  Service service_;
};

class PageFactory final : public detail::StatusPageFactory {
 public:
  explicit PageFactory(std::string address) : address_(std::move(address)) {
    (void)status::ListenAddress::parse(address_);  // throws for an invalid address
  }
  [[nodiscard]] std::unique_ptr<detail::StatusPage> open(
      const std::shared_ptr<NodeCore>& node) const override {
    return std::make_unique<NodesPage>(node, address_);
  }

 private:
  const std::string address_;
};

}  // namespace

std::shared_ptr<const detail::StatusPageFactory> status_page(const std::string& address) {
  return std::make_shared<const PageFactory>(address);
}

class StatusServer::Parts {
 public:
  Parts(const Node& node, const StatusOptions& options)
      : service(detail::NodeAccess::core(node), options.address) {}
  Service service;
};

StatusServer::StatusServer(const Node& node, const StatusOptions& options)
    : parts_(std::make_unique<Parts>(node, options)) {}

StatusServer::~StatusServer() = default;

std::string StatusServer::address() const { return parts_->service.address(); }

void StatusServer::stop() { parts_->service.stop(); }

}  // namespace batchrpc
