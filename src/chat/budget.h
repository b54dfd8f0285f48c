#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "chat/chat_template.h"

namespace muster {

/// What one rendering has used of its limits.
///
/// Owner: one rendering; not thread-safe.
class ChatBudget {
 public:
  explicit ChatBudget(const ChatLimits& limits) : limits_(limits) {}

  /// Counts a step, and one more for each 64 bytes or elements that it looks at.
  Status spend(std::size_t size = 0) {
    steps_ += 1 + size / 64;
    if (steps_ <= limits_.steps_max) return Done{};
    return exhausted("steps", limits_.steps_max);
  }

  /// Counts bytes of texts and lists that are made. What is made later is not taken off again.
  Status take(std::size_t bytes) {
    MUSTER_TRY(spend(bytes));
    bytes_ += bytes;
    if (bytes_ <= limits_.bytes_max) return Done{};
    return exhausted("bytes", limits_.bytes_max);
  }

  /// Whether a value may go on: one that is put into itself again and again is small, and without
  /// an end for whoever walks over it or frees it.
  Status check(const ChatValue& value) const {
    const auto measure = value.measure();
    if (measure.holds_namespace) {
      return Error{ErrorKind::Unsupported, "a namespace within a list or map is not known"};
    }
    if (measure.depth > kNestingMax) {
      return exhausted("lists and maps within each other", kNestingMax);
    }
    if (measure.weight > limits_.bytes_max) return exhausted("bytes", limits_.bytes_max);
    return Done{};
  }

  /// One level deeper as long as it lives.
  class Level {
   public:
    explicit Level(ChatBudget& budget) : budget_(budget) { ++budget_.depth_; }
    ~Level() { --budget_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ChatBudget& budget_;
  };
  Status check_depth() const {
    if (depth_ <= limits_.depth_max) return Done{};
    return exhausted("levels of calls and blocks", limits_.depth_max);
  }

 private:
  // JSON comes with 64 levels at most (ChatValue::parse), to which a template may add some.
  static constexpr std::uint32_t kNestingMax = 100;

  static Error exhausted(const char* what, std::uint64_t limit) {
    return Error{
        ErrorKind::ResourceExhausted,
        "more " + std::string(what) + " than a rendering may take: " + std::to_string(limit)};
  }

  const ChatLimits limits_;
  std::uint64_t steps_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace muster
