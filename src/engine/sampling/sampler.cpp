// One token from one row of logits. Without a filter it is drawn from the weights of all, chunk by
// chunk; with one from a list of candidates, few of them but where logits are nearly equal.

#include "engine/sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ops/decoder_kernels.h"
#include "engine/sampling/counter_random.h"
#include "engine/sampling/likeliest.h"
#include "engine/sampling/token_weights.h"

namespace muster::engine {
namespace {

constexpr double kLessByRounding = 0.999;  // more than float32 sums are off

struct Candidate {
  std::uint32_t token = 0;
  float weight = 0;  // e^((logit - largest) / temperature)
};

bool is_likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

double sum_of(const std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const auto& candidate : candidates) sum += candidate.weight;
  return sum;
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
class RawLogprobs {
 public:
  RawLogprobs(std::span<const float> logits, float largest)
      : logits_(logits.begin(), logits.end()),
        log_sum_(largest + std::log(sum_of_weights(logits, largest))) {}

  float of(std::uint32_t token) const { return static_cast<float>(logits_[token] - log_sum_); }

  TokenLogprobs with_top(std::uint32_t token, std::size_t count) const {
    TokenLogprobs logprobs{.chosen = of(token), .top = {}};
    for (const auto id : likeliest(logits_, count)) logprobs.top.emplace_back(id, of(id));
    return logprobs;
  }

 private:
  std::vector<float> logits_;
  double log_sum_ = 0;
};

Error not_finite() { return corrupt_error("the model's logits are not finite numbers"); }

// Before any comparison of two: what is no number has no order.
Result<RawLogprobs> raw_logprobs(std::span<const float> logits) {
  const float largest = logits[best_decoder_kernels().largest(logits.size(), logits.data())];
  if (!std::isfinite(largest)) return not_finite();
  return RawLogprobs(logits, largest);
}

std::vector<Candidate> top_k(std::span<const float> logits, float largest,
                             const SamplingOptions& options) {
  std::vector<Candidate> all;
  const auto tokens = likeliest(logits, options.top_k);
  all.reserve(tokens.size());
  for (const auto token : tokens) {
    const double above = (static_cast<double>(logits[token]) - largest) / options.temperature;
    all.push_back({token, static_cast<float>(std::exp(above))});
  }
  return all;
}

std::vector<Candidate> of_at_least(const TokenWeights& weights, double least) {
  std::vector<Candidate> found;
  const auto all = weights.all();
  found.reserve(all.size());  // else it would grow to twice as much
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i] >= least) found.push_back({i, all[i]});
  }
  return found;
}

/// The fewest of the likeliest whose sum reaches `wanted`; at least one.
void keep_likeliest(std::vector<Candidate>& candidates, double wanted) {
  const auto later = [](const Candidate& a, const Candidate& b) { return is_likelier(b, a); };
  std::make_heap(candidates.begin(), candidates.end(), later);
  auto rest = candidates.end();
  double sum = 0;
  do {
    std::pop_heap(candidates.begin(), rest, later);
    --rest;
    sum += rest->weight;
  } while (rest != candidates.begin() && sum < wanted);
  candidates.erase(candidates.begin(), rest);
}

/// place: of [0, 1).
std::uint32_t draw_of(std::vector<Candidate> candidates, double place) {
  // The same order whichever way the candidates were found.
  const auto is_before = [](const Candidate& a, const Candidate& b) { return a.token < b.token; };
  if (!std::is_sorted(candidates.begin(), candidates.end(), is_before)) {
    std::sort(candidates.begin(), candidates.end(), is_before);
  }
  double left = place * sum_of(candidates);
  for (const auto& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) return candidate.token;
  }
  // Rounding only: the last one that can be drawn.
  const auto last = std::find_if(candidates.rbegin(), candidates.rend(),
                                 [](const Candidate& one) { return one.weight > 0; });
  return last->token;
}

// The likeliest has weight 1. Without top_k tokens that neither top_p nor min_p can leave are left
// out at once: those below min_p, and those so rare that all of them together are less than what
// top_p leaves out.
std::uint32_t draw(std::span<float> logits, float largest, const SamplingOptions& options,
                   std::uint64_t position) {
  const double place =
      uniform_at({.seed = options.seed, .choice = options.choice, .position = position});
  std::vector<Candidate> candidates;
  double total = 0;
  if (options.top_k > 0 && options.top_k < logits.size()) {
    candidates = top_k(logits, largest, options);
    total = sum_of(candidates);
  } else {
    const TokenWeights weights(logits, largest, options.temperature);
    total = weights.total();
    if (options.top_p >= 1 && options.min_p <= 0) return weights.token_at(place * total);
    const double rare =
        kLessByRounding * (1 - options.top_p) * total / static_cast<double>(logits.size());
    candidates = of_at_least(weights, std::max(rare, options.min_p));
  }
  if (options.top_p < 1) keep_likeliest(candidates, options.top_p * total);
  if (options.min_p > 0) {
    std::erase_if(candidates, [&](const Candidate& one) { return one.weight < options.min_p; });
  }
  return draw_of(std::move(candidates), place);
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
  // A top_p of 0 leaves the likeliest, which weights in float32 may not tell from the next one.
  if (options.temperature > 0 && options.top_p > 0) {
    sampled.token = draw(logits, largest, options, position);
  }
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
