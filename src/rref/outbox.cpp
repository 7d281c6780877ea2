#include "rref/outbox.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "call/notify.hpp"
#include "rref/rref_parts.hpp"

namespace batchrpc::detail {
namespace {

// The most entries of a kind in one message.
constexpr std::size_t kMost = 4096;

template <class T>
bool send_list(LocalNode& node, const std::string& peer, std::string_view name,
               const std::vector<T>& list) {
  if (list.size() <= kMost) return list.empty() || notify(node, peer, name, list);
  for (std::size_t begin = 0; begin < list.size(); begin += kMost) {
    const auto end = std::min(begin + kMost, list.size());
    const std::vector<T> part(list.begin() + static_cast<std::ptrdiff_t>(begin),
                              list.begin() + static_cast<std::ptrdiff_t>(end));
    if (!notify(node, peer, name, part)) return false;
  }
  return true;
}

}  // namespace

// The caller must hold the lock.
Outbox::Mail& Outbox::mail_for(const std::string& peer) {
  if (!std::exchange(scheduled_, true)) {
    node_.loop()->post([weak = node_.weak_from_this()] {
      if (const auto node = weak.lock()) node->extension<RrefParts>()->outbox->flush();
    });
  }
  return mail_[peer];
}

void Outbox::add(const std::string& peer, HoldUpdate update) {
  const std::lock_guard lock(mutex_);
  update.number = ++told_;
  mail_for(peer).updates.push_back(std::move(update));
}

void Outbox::add(const std::string& peer, const Fork& arrived) {
  const std::lock_guard lock(mutex_);
  mail_for(peer).arrived.push_back(arrived);
}

void Outbox::add(const std::string& peer, const ForkQuestion& question) {
  const std::lock_guard lock(mutex_);
  mail_for(peer).questions.push_back(question);
}

void Outbox::add(const std::string& peer, NoObject none) {
  const std::lock_guard lock(mutex_);
  mail_for(peer).none.push_back(std::move(none));
}

void Outbox::flush() {
  std::map<std::string, Mail> leaving;
  {
    const std::lock_guard lock(mutex_);
    scheduled_ = false;
    leaving.swap(mail_);
  }
  std::set<std::string> not_told;
  for (const auto& [peer, mail] : leaving) {
    // Do not connect to a peer that is gone just for this.
    if (node_.peers().standing(peer).live && send(peer, mail)) continue;
    if (!mail.updates.empty()) not_told.insert(peer);
  }
  if (!not_told.empty()) node_.extension<RrefParts>()->references->not_told(not_told);
}

bool Outbox::send(const std::string& peer, const Mail& mail) {
  if (!mail.questions.empty()) ask(peer, mail.questions);
  if (!send_list(node_, peer, kHold, mail.updates)) return false;
  // A peer that does not read its answers gets them when it asks again (R3, R6).
  if (node_.peers().is_behind(peer)) return true;
  return send_list(node_, peer, kArrived, mail.arrived) && send_list(node_, peer, kNone, mail.none);
}

// A peer that does not know this function has never decoded a handle, so none need be kept for it.
void Outbox::ask(const std::string& peer, const std::vector<ForkQuestion>& questions) {
  std::vector<Fork> asked;
  asked.reserve(questions.size());
  for (const ForkQuestion& question : questions)
    asked.push_back(question.fork);
  OutgoingOptions options;
  options.timeout = node_.options().liveness.dead_after;  // it will ask again before that
  send_call<std::vector<Fork>, std::vector<ForkQuestion>>(
      submit_to(node_, peer),
      function_key(kAsk, signature<std::vector<Fork>, std::vector<ForkQuestion>>()),
      std::move(options), questions)
      .then([weak = node_.weak_from_this(), peer,
             asked = std::move(asked)](const Result<std::vector<Fork>>& not_here) {
        const auto node = weak.lock();
        if (!node || (!not_here && not_here.code() != ErrorCode::not_found)) return;
        node->extension<RrefParts>()->references->arrived(peer,
                                                          not_here ? not_here.value() : asked);
      });
}

}  // namespace batchrpc::detail
