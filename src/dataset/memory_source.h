#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "dataset/byte_source.h"

namespace muster {

/// Bytes in memory as a source that gives at most `read_size` of them at a time: tests and fuzzers
/// see with it that no parser depends on where a read ends.
///
/// Threads: not thread-safe.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string bytes, std::size_t read_size)
      : bytes_(std::move(bytes)), read_size_(read_size) {}

  Result<std::size_t> read(std::span<char> buffer) override {
    const std::size_t count = std::min({buffer.size(), read_size_, bytes_.size() - position_});
    std::copy_n(bytes_.data() + position_, count, buffer.data());
    position_ += count;
    return count;
  }

  std::uint64_t size_consumed() const override { return position_; }

 private:
  std::string bytes_;
  std::size_t read_size_;
  std::size_t position_ = 0;
};

}  // namespace muster
