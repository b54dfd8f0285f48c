// A table from three tokens to the place behind them. Two that share a bucket push each other out:
// what is found is compared, and what is lost costs a guess. So the table needs no more than a
// number for each token.

#include "scheduler/prompt_lookup.h"

#include <algorithm>
#include <bit>

namespace muster {
namespace {

constexpr std::size_t kGram = 3;
constexpr std::size_t kBucketsLeast = 256;
constexpr double kNewest = 0.125;  // what the latest guess counts in the rate

std::uint32_t token_of(std::span<const std::uint32_t> ids, std::size_t place, std::size_t at,
                       std::size_t i) {
  return ids[place + i % (at - place)];
}

}  // namespace

std::vector<std::uint32_t> PromptLookup::draft(std::span<const std::uint32_t> ids,
                                               std::uint32_t most) {
  learn(ids);
  index(ids);
  const auto place = find(ids);
  guess_.reset();
  if (!place) return {};
  guess_ = Guess{.place = *place, .at = ids.size()};
  std::vector<std::uint32_t> draft;
  while (draft.size() < most) draft.push_back(token_of(ids, *place, ids.size(), draft.size()));
  return draft;
}

// A guess is over with its first token that is wrong: those behind it were never to be computed.
void PromptLookup::learn(std::span<const std::uint32_t> ids) {
  if (!guess_) return;
  const auto [place, at] = *guess_;
  for (std::size_t i = 0; at + i < ids.size(); ++i) {
    const bool is_hit = token_of(ids, place, at, i) == ids[at + i];
    hit_rate_ += kNewest * ((is_hit ? 1.0 : 0.0) - hit_rate_);
    if (!is_hit) return;
  }
}

// The three at the very end are left for later: they are what is looked for.
void PromptLookup::index(std::span<const std::uint32_t> ids) {
  if (2 * ids.size() > ends_.size()) {
    ends_.assign(std::max(kBucketsLeast, std::bit_ceil(2 * ids.size())), 0);
    indexed_ = 0;
  }
  for (auto end = std::max(indexed_, kGram); end < ids.size(); ++end) note(ids, end);
  indexed_ = ids.size();
}

void PromptLookup::note(std::span<const std::uint32_t> ids, std::size_t end) {
  ends_[bucket(ids.subspan(end - kGram, kGram))] = static_cast<std::uint32_t>(end);
}

std::optional<std::size_t> PromptLookup::find(std::span<const std::uint32_t> ids) const {
  if (ids.size() <= kGram) return std::nullopt;
  const auto wanted = ids.last(kGram);
  const std::size_t end = ends_[bucket(wanted)];
  if (end == 0) return std::nullopt;
  const auto found = ids.subspan(end - kGram, kGram);
  if (!std::equal(found.begin(), found.end(), wanted.begin())) return std::nullopt;
  return end;
}

// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4) of each id.
std::size_t PromptLookup::bucket(std::span<const std::uint32_t> gram) const {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  std::uint64_t hash = 0;
  for (const auto id : gram) hash = (hash ^ id) * kGolden;
  return static_cast<std::size_t>(hash >> 32) & (ends_.size() - 1);
}

}  // namespace muster
