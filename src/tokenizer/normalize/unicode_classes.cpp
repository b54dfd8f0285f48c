// The tables are generated as runs of equal characters and unfolded on first use into two levels
// of blocks. A block equal to the one before is stored once, and most of Unicode is such blocks.
// A look-up is then two dependent loads without a branch on the script.

#include "tokenizer/normalize/unicode_classes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <vector>

namespace muster {
namespace {

struct ClassRun {
  char32_t first;
  std::uint16_t classes;
};

struct LowercaseRun {
  char32_t first;
  char32_t last;
  std::uint8_t stride;
  std::int32_t distance;
};

#include "tokenizer/normalize/unicode_data.inc"

constexpr char32_t kCodePointCount = 0x110000;
constexpr std::size_t kBlockSize = 256;  // a block of one class only is stored once for all
constexpr std::size_t kBlockCount = kCodePointCount / kBlockSize;

/// The runs unfolded into a table of blocks: 4,352 block numbers, then the blocks that differ.
class ClassTable {
 public:
  explicit ClassTable(std::span<const ClassRun> runs) {
    std::size_t run = 0;
    for (std::size_t block = 0; block < kBlockCount; ++block) {
      const std::size_t first = block * kBlockSize;
      std::array<std::uint16_t, kBlockSize> classes{};
      for (std::size_t i = 0; i < kBlockSize; ++i) {
        while (run + 1 < runs.size() && runs[run + 1].first <= first + i) {
          ++run;
        }
        classes[i] = runs[run].classes;
      }
      const bool repeats = block > 0 && std::equal(classes.begin(), classes.end(),
                                                   values_.end() - std::ptrdiff_t{kBlockSize});
      if (!repeats) {
        values_.insert(values_.end(), classes.begin(), classes.end());
      }
      block_starts_[block] = static_cast<std::uint32_t>(values_.size() - kBlockSize);
    }
  }

  std::uint32_t at(char32_t code_point) const {
    const char32_t known = code_point < kCodePointCount ? code_point : kCodePointCount - 1;
    return values_[block_starts_[known / kBlockSize] + known % kBlockSize];
  }

 private:
  std::array<std::uint32_t, kBlockCount> block_starts_{};
  std::vector<std::uint16_t> values_;
};

}  // namespace

std::uint32_t character_classes(char32_t code_point) {
  static const ClassTable table(kClassRuns);
  return table.at(code_point);
}

GraphemeClass grapheme_class(char32_t code_point) {
  static const ClassTable table(kGraphemeRuns);
  return static_cast<GraphemeClass>(table.at(code_point));
}

std::vector<ClassRange> class_ranges() {
  std::vector<ClassRange> ranges;
  for (std::size_t i = 0; i < std::size(kClassRuns); ++i) {
    const bool is_last = i + 1 == std::size(kClassRuns);
    const char32_t end = is_last ? kCodePointCount : kClassRuns[i + 1].first;
    ranges.push_back({kClassRuns[i].first, end - 1, kClassRuns[i].classes});
  }
  return ranges;
}

char32_t lowercase(char32_t code_point) {
  if (code_point < 0x80) {
    return code_point >= 'A' && code_point <= 'Z' ? code_point + 32 : code_point;
  }
  if (code_point == kCapitalIWithDot) {
    return U'i';
  }
  const auto* run =
      std::upper_bound(std::begin(kLowercaseRuns), std::end(kLowercaseRuns), code_point,
                       [](char32_t c, const LowercaseRun& r) { return c < r.first; });
  if (run == std::begin(kLowercaseRuns)) {
    return code_point;
  }
  --run;
  const bool is_capital = code_point <= run->last && (code_point - run->first) % run->stride == 0;
  return is_capital ? static_cast<char32_t>(static_cast<std::int32_t>(code_point) + run->distance)
                    : code_point;
}

}  // namespace muster
