#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace muster {

/// The token ids of a text: a list of its own, or a part of one that several texts share. A thread
/// that tokenises many takes memory for all of them at once, and the loop on which they end gives
/// it back with the last of them, not text by text to another thread's heap.
///
/// Threads: as std::shared_ptr.
class TextIds {
 public:
  using List = std::vector<std::uint32_t>;

  struct Part {
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  TextIds() = default;
  // Implicit on purpose: a text's own list is the usual case.
  TextIds(List own) : own_(std::move(own)) {}  // NOLINT(google-explicit-constructor)
  /// part: within `shared`.
  TextIds(std::shared_ptr<const List> shared, Part part)
      : shared_(std::move(shared)), part_(part) {}

  std::span<const std::uint32_t> values() const {
    return shared_ ? std::span(*shared_).subspan(part_.begin, part_.size) : std::span(own_);
  }
  std::size_t size() const { return shared_ ? part_.size : own_.size(); }

 private:
  List own_;
  std::shared_ptr<const List> shared_;
  Part part_;
};

}  // namespace muster
