// The largest few of many: each of the `count` largest of the largest of blocks is a logit, so none
// that is smaller than the last of those is among the `count` largest.

#include "engine/sampling/likeliest.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/ops/decoder_kernels.h"

namespace muster::engine {
namespace {

constexpr std::size_t kBlock = 64;

std::span<const float> block_of(std::span<const float> logits, std::size_t index) {
  const std::size_t begin = index * kBlock;
  return logits.subspan(begin, std::min(kBlock, logits.size() - begin));
}

std::vector<float> largest_of_blocks(std::span<const float> logits) {
  const auto find = best_decoder_kernels().largest;
  std::vector<float> most((logits.size() + kBlock - 1) / kBlock);
  for (std::size_t b = 0; b < most.size(); ++b) {
    const auto block = block_of(logits, b);
    most[b] = block[find(block.size(), block.data())];
  }
  return most;
}

/// Ids of at least `count` logits, among them the largest ones.
std::vector<std::uint32_t> ids_of_large(std::span<const float> logits, std::size_t count) {
  std::vector<std::uint32_t> ids;
  const auto most = largest_of_blocks(logits);
  if (count > most.size()) {
    ids.resize(logits.size());
    std::iota(ids.begin(), ids.end(), 0U);
    return ids;
  }
  auto sorted = most;
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
  for (std::size_t b = 0; b < most.size(); ++b) {
    if (most[b] < *last) continue;
    const auto block = block_of(logits, b);
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block[i] >= *last) ids.push_back(static_cast<std::uint32_t>(b * kBlock + i));
    }
  }
  return ids;
}

}  // namespace

std::vector<std::uint32_t> likeliest(std::span<const float> logits, std::size_t count) {
  count = std::min(count, logits.size());
  if (count == 0) return {};
  auto ids = ids_of_large(logits, count);
  const auto is_likelier = [&](std::uint32_t a, std::uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count);
  if (end != ids.end()) std::nth_element(ids.begin(), end, ids.end(), is_likelier);
  std::sort(ids.begin(), end, is_likelier);
  ids.resize(count);
  return ids;
}

}  // namespace muster::engine
