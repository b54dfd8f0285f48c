#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster {

/// All combinations of how many devices of each class are used, 0 to counts[c], numbered in the
/// order in which the first class counts up fastest: a combination comes after all those with one
/// device less.
class ClassCounts {
 public:
  struct State {
    std::size_t index = 0;
    std::uint64_t devices = 0;        // sum of `used`
    std::vector<std::uint32_t> used;  // [C]
  };

  explicit ClassCounts(std::span<const std::uint32_t> counts)
      : counts_(counts.begin(), counts.end()), strides_(counts.size()) {
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      strides_[c] = size_;
      size_ *= counts_[c] + std::size_t{1};
    }
  }

  /// prod(counts + 1), or nullopt when that is more than `limit`.
  static std::optional<std::uint64_t> combinations(std::span<const std::uint32_t> counts,
                                                   std::uint64_t limit) {
    std::uint64_t product = 1;
    for (const auto count : counts) {
      if (product > limit / (count + std::uint64_t{1})) return std::nullopt;
      product *= count + std::uint64_t{1};
    }
    return product;
  }

  std::uint32_t class_count() const { return static_cast<std::uint32_t>(counts_.size()); }
  std::size_t size() const { return size_; }
  std::size_t stride(std::uint32_t device_class) const { return strides_[device_class]; }

  State first() const { return {0, 0, std::vector<std::uint32_t>(counts_.size(), 0)}; }

  /// The next combination; false after the last.
  bool advance(State& state) const {
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      if (state.used[c] < counts_[c]) {
        ++state.used[c];
        ++state.devices;
        ++state.index;
        return true;
      }
      state.devices -= state.used[c];
      state.used[c] = 0;
    }
    return false;
  }

  State at(std::size_t index) const {
    State state{index, 0, {}};
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      const auto used = index / strides_[c] % (counts_[c] + std::size_t{1});
      state.used.push_back(static_cast<std::uint32_t>(used));
      state.devices += used;
    }
    return state;
  }

  /// The combination with one device of a class less.
  void take_one(State& state, std::uint32_t device_class) const {
    state.index -= strides_[device_class];
    --state.used[device_class];
    --state.devices;
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::vector<std::size_t> strides_;
  std::size_t size_ = 1;
};

}  // namespace muster
