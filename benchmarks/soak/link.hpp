#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace soak {

/// One end of the channel between the conductor and a child. It carries whole text messages and
/// never blocks on sending. Thread-safe only where stated.
class Link {
 public:
  Link() = default;
  /// Takes ownership of the file descriptor.
  explicit Link(int file) : file_(file) {}
  ~Link();
  Link(Link&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Link& operator=(Link&& other) noexcept;

  /// Makes two ends; a child inherits the second.
  static std::pair<Link, Link> pair();

  [[nodiscard]] int file() const { return file_; }
  /// Whether a child started now inherits it.
  void set_inherited(bool inherited) const;

  /// Returns false if there is no room now. Throws nothing if the other end is closed.
  [[nodiscard]] bool try_send(const std::string& text) const;
  /// The next message, if there is one. Sets `ended` if no more will come.
  std::optional<std::string> receive(bool& ended) const;
  /// Waits for a message, at most for `time`.
  void wait(std::chrono::milliseconds time) const;

 private:
  int file_ = -1;
};

/// A child's messages, which any of its threads may add; flush() on the main thread sends them.
class Report {
 public:
  /// A guarantee was broken.
  void failed(const std::string& what) { add("failed " + what); }
  void add(std::string line);

  /// Sends as much as there is room for. Returns whether everything was sent.
  bool flush(const Link& link);

 private:
  std::mutex mutex_;
  std::deque<std::string> lines_;
};

}  // namespace soak
