// One token from one row of logits. What is left out is left out of a list of candidates, so that
// the draw walks over few of them.

#include "engine/sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "engine/ops/decoder_kernels.h"
#include "engine/sampling/counter_random.h"

namespace muster::engine {
namespace {

struct Candidate {
  float logit = 0;
  std::uint32_t token = 0;
  double weight = 0;  // e^(logit - largest)
};

bool is_likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

bool has_penalties(const SamplingOptions& options) {
  return options.repetition_penalty != 1 || options.presence_penalty != 0 ||
         options.frequency_penalty != 0;
}

void penalize(std::span<float> logits, const SamplingOptions& options,
              const TokenHistory& history) {
  for (const auto& [token, bias] : options.logit_bias) logits[token] += bias;
  if (!has_penalties(options)) return;
  for (const auto& [token, seen] : history.seen()) {
    double logit = logits[token];
    logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
    if (seen.reply_count > 0) {
      logit -= options.presence_penalty + options.frequency_penalty * seen.reply_count;
    }
    logits[token] = static_cast<float>(logit);
  }
}

/// The logarithm of the softmax, of logits that are about to be changed:
///
///   ln p(i) = logit(i) - ln(sum of e^logit) = logit(i) - largest - ln(sum of e^(logit - largest))
///
/// No power is above 1 and one of them is 1, so that neither the sum nor its logarithm overflows.
/// It is summed in float64: the many small terms of a large vocabulary would be lost in float32.
class RawLogprobs {
 public:
  RawLogprobs(std::span<const float> logits, float largest)
      : logits_(logits.begin(), logits.end()) {
    double sum = 0;
    for (const float logit : logits_) sum += std::exp(static_cast<double>(logit) - largest);
    log_sum_ = largest + std::log(sum);
  }

  float of(std::uint32_t token) const { return static_cast<float>(logits_[token] - log_sum_); }

  TokenLogprobs with_top(std::uint32_t token, std::size_t count) const {
    TokenLogprobs logprobs{.chosen = of(token), .top = {}};
    if (count == 0) return logprobs;
    std::vector<std::uint32_t> ids(logits_.size());
    std::iota(ids.begin(), ids.end(), 0U);
    ids.resize(sort_first(ids, count));
    for (const auto id : ids) logprobs.top.emplace_back(id, of(id));
    return logprobs;
  }

 private:
  // How many have been brought to the front, the likeliest first.
  std::size_t sort_first(std::vector<std::uint32_t>& ids, std::size_t count) const {
    count = std::min(count, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                      [this](std::uint32_t a, std::uint32_t b) {
                        return is_likelier({logits_[a], a}, {logits_[b], b});
                      });
    return count;
  }

  std::vector<float> logits_;
  double log_sum_ = 0;
};

Error not_finite() { return {ErrorKind::Internal, "the model's logits are not finite numbers"}; }

// Before any comparison of two: what is no number has no order.
Result<RawLogprobs> raw_logprobs(std::span<const float> logits) {
  const float largest = logits[best_decoder_kernels().largest(logits.size(), logits.data())];
  if (!std::isfinite(largest)) return not_finite();
  return RawLogprobs(logits, largest);
}

/// The candidates that top_k leaves, weighed against the largest.
std::vector<Candidate> weigh(std::span<const float> logits, float largest,
                             const SamplingOptions& options) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (std::uint32_t i = 0; i < logits.size(); ++i) all.push_back({logits[i], i});
  if (options.top_k > 0 && options.top_k < all.size()) {
    const auto cut = all.begin() + static_cast<std::ptrdiff_t>(options.top_k);
    std::nth_element(all.begin(), cut, all.end(), is_likelier);
    all.resize(options.top_k);
  }
  for (auto& candidate : all) {
    const double above = (static_cast<double>(candidate.logit) - largest) / options.temperature;
    candidate.weight = std::exp(above);
  }
  return all;
}

/// The fewest of the likeliest whose share reaches top_p; at least one.
void keep_top_p(std::vector<Candidate>& candidates, double top_p) {
  double total = 0;
  for (const auto& candidate : candidates) total += candidate.weight;
  const auto later = [](const Candidate& a, const Candidate& b) { return is_likelier(b, a); };
  std::make_heap(candidates.begin(), candidates.end(), later);
  auto rest = candidates.end();
  for (double sum = 0; rest != candidates.begin() && sum < top_p * total;) {
    std::pop_heap(candidates.begin(), rest, later);
    --rest;
    sum += rest->weight;
  }
  if (rest == candidates.end()) {  // top_p of 0
    std::pop_heap(candidates.begin(), rest, later);
    --rest;
  }
  candidates.erase(candidates.begin(), rest);
}

std::uint32_t draw(std::span<const float> logits, float largest, const SamplingOptions& options,
                   std::uint64_t position) {
  auto candidates = weigh(logits, largest, options);
  if (options.top_p < 1) keep_top_p(candidates, options.top_p);
  if (options.min_p > 0) {
    // The likeliest has weight 1.
    std::erase_if(candidates, [&](const Candidate& one) { return one.weight < options.min_p; });
  }
  // The same order whichever way the candidates were found.
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
  double total = 0;
  for (const auto& candidate : candidates) total += candidate.weight;
  double left =
      total * uniform_at({.seed = options.seed, .choice = options.choice, .position = position});
  for (const auto& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) return candidate.token;
  }
  // Rounding only: the last one that can be drawn.
  const auto last = std::find_if(candidates.rbegin(), candidates.rend(),
                                 [](const Candidate& one) { return one.weight > 0; });
  return last->token;
}

}  // namespace

TokenHistory::TokenHistory(const SamplingOptions& options) : is_used_(has_penalties(options)) {}

void TokenHistory::add_prompt(std::uint32_t token) {
  if (is_used_) seen_.try_emplace(token);
}

void TokenHistory::add_reply(std::uint32_t token) {
  if (is_used_) ++seen_[token].reply_count;
}

Result<SampledToken> sample(std::span<float> logits, const SamplingOptions& options,
                            const TokenHistory& history, std::uint64_t position) {
  SampledToken sampled;
  const auto& kernels = best_decoder_kernels();
  std::optional<RawLogprobs> logprobs;
  if (options.logprob_count) logprobs = MUSTER_TRY(raw_logprobs(logits));
  penalize(logits, options, history);
  sampled.token = static_cast<std::uint32_t>(kernels.largest(logits.size(), logits.data()));
  const float largest = logits[sampled.token];
  if (!std::isfinite(largest)) return not_finite();
  if (options.temperature > 0) sampled.token = draw(logits, largest, options, position);
  if (logprobs) sampled.logprobs = logprobs->with_top(sampled.token, *options.logprob_count);
  return sampled;
}

Result<TokenLogprobs> score(std::span<const float> logits, std::uint32_t token,
                            std::size_t top_count) {
  const auto logprobs = MUSTER_TRY(raw_logprobs(logits));
  return logprobs.with_top(token, top_count);
}

Status check_sampling(const SamplingOptions& options, std::size_t vocab_size) {
  const auto invalid = [](const char* field, const char* range, double value) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} must be {}: {}", field, range, value)};
  };
  const auto is_within = [](double value, double least, double most) {
    return value >= least && value <= most;  // false for what is not a number
  };
  if (!is_within(options.temperature, 0, 100)) {
    return invalid("temperature", "from 0 to 100", options.temperature);
  }
  if (!is_within(options.top_p, 0, 1)) return invalid("top_p", "from 0 to 1", options.top_p);
  if (!is_within(options.min_p, 0, 1)) return invalid("min_p", "from 0 to 1", options.min_p);
  if (!is_within(options.repetition_penalty, 1e-3, 1e3)) {
    return invalid("repetition_penalty", "from 0.001 to 1000", options.repetition_penalty);
  }
  if (!is_within(options.presence_penalty, -100, 100)) {
    return invalid("presence_penalty", "from -100 to 100", options.presence_penalty);
  }
  if (!is_within(options.frequency_penalty, -100, 100)) {
    return invalid("frequency_penalty", "from -100 to 100", options.frequency_penalty);
  }
  if (options.logprob_count.value_or(0) > kLogprobsMost) {
    return invalid("the number of logprobs", "at most 20", *options.logprob_count);
  }
  for (const auto& [token, bias] : options.logit_bias) {
    if (token >= vocab_size) {
      return invalid("a token with a bias", "in the vocabulary", token);
    }
    if (!is_within(bias, -1e6, 1e6)) return invalid("a bias", "from -1e6 to 1e6", bias);
  }
  return Done{};
}

}  // namespace muster::engine
