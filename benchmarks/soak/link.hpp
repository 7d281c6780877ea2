#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace soak {

/// One end of the line between the conductor and a child: whole messages of text, none of which
/// blocks. Thread-safe where it says so.
class Link {
 public:
  Link() = default;
  /// Owns the file descriptor.
  explicit Link(int file) : file_(file) {}
  ~Link();
  Link(Link&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Link& operator=(Link&& other) noexcept;

  /// Two ends; a child inherits the second.
  static std::pair<Link, Link> pair();

  [[nodiscard]] int file() const { return file_; }
  /// Whether a child started now inherits it.
  void set_inherited(bool inherited) const;

  /// False when there is no room now. Throws nothing when nobody reads.
  [[nodiscard]] bool try_send(const std::string& text) const;
  /// The next message, if one is there; `ended` becomes true when none will come.
  std::optional<std::string> receive(bool& ended) const;
  /// Waits for a message, at most so long.
  void wait(std::chrono::milliseconds time) const;

 private:
  int file_ = -1;
};

/// What a child has to say, from any of its threads; flush() on the main one sends it.
class Report {
 public:
  /// A promise was broken.
  void failed(const std::string& what) { add("failed " + what); }
  void add(std::string line);

  /// Sends what there is room for; returns whether all is sent.
  bool flush(const Link& link);

 private:
  std::mutex mutex_;
  std::deque<std::string> lines_;
};

}  // namespace soak
