// A worker for tests: it speaks the protocol of muster-worker about decoders, and its model counts:
// the next token of a sequence is its last one plus one. 1,000 ids; 999 is followed by 0. Of a
// sequence that begins as an earlier one of its scope it says so, in blocks of 16 ids, as a worker
// with a prefix cache does that never evicts. Choices of one request differ: the reply of choice 2
// begins two tokens further on. The log-probability of token t is (t - 64) / 8 below 64 and 0 from
// there on, so that greater ids are likelier; the alternatives told beside it are t itself, t - 1,
// t - 2, … The ids of a prompt are scored so, too, and count as sent.
// COUNTING_WORKER holds its orders as words:
//   die_after=5   aborts as soon as it has sent so many tokens; at 0 in place of the first one
//   kill_after=5  the same by a signal that looks as if somebody outside had sent it
//   wait_at=5     says no more of a sequence that has so many tokens of a reply
//   one_more      tells a token more than it is asked for
//   fail_at=5     answers that a sequence cannot be computed that has so many tokens of a reply
//   nan_at=5      answers there that its logits are no numbers
//   fail_choice=1 answers that this choice cannot be computed
//   no_logprobs   tells none, whatever is asked
//   no_scores     tells nothing of a prompt, whatever is asked
//   poison=7      aborts when it is given a prompt that holds this id
//   kill_on=7     the same by a signal that looks as if somebody outside had sent it
//   hang_on=7     stops (SIGSTOP) at such a prompt
//   length_max=80 tokens of prompt and reply at most; 100 without it
//   lose_end      aborts in place of saying that a sequence has ended
//   fail_load     cannot load the decoder
//   no_prefix_cache  cannot load it with one
//   int8_cache    cannot load it with another cache than one in 8 bits
//   full_on=1     has no memory to load it on the CPU device of that index
//   die_at_load   aborts in place of loading it
//   exit_at_load  says a last word and exits with 3 there
//   hang_at_load  stops (SIGSTOP) there
//   die_at_probe  aborts in place of measuring it; without it the i-th precision that is asked for
//                 computes 100 (i + 1) tokens a second, with a divergence of i / 1000
//   hang_at_probe stops (SIGSTOP) there
//   talk_at_probe prints more than a pipe holds before it does
//   other_build   claims to be of another build
//   wrong_canary  answers its canary otherwise
//   nan_canary    answers its canary that its logits are no numbers
// All but the last two are about streams and about loading: whatever else it is told, it answers
// its canary.

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/build_info.h"
#include "base/liveness_pipe.h"
#include "base/text.h"
#include "net/frame_channel.h"
#include "spec/worker_arguments.h"
#include "wire/generation_messages.h"
#include "wire/messages.h"

namespace muster {
namespace {

constexpr int kSocket = 3;
constexpr std::uint32_t kVocabSize = 1000;
constexpr std::uint32_t kLengthMax = 100;
constexpr std::uint32_t kBlockCount = 1000;
constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint64_t kCanary = UINT64_MAX;  // coordinator/decoder_canary.h

using Orders = std::map<std::string, std::uint32_t>;

Orders read_orders() {
  Orders orders;
  const char* text = std::getenv("COUNTING_WORKER");
  for (const auto& word : split(text == nullptr ? "" : text, ' ')) {
    const auto equals = word.find('=');
    std::uint32_t value = 1;
    if (equals != std::string::npos) {
      std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
    }
    orders[word.substr(0, equals)] = value;
  }
  return orders;
}

float logprob_of(std::uint32_t token) {
  return token < 64 ? (static_cast<float>(token) - 64) / 8 : 0;
}

Failed no_numbers() { return {{ErrorKind::Corrupt, "the model's logits are not finite numbers"}}; }

Status send(MessageType type, std::uint64_t id, const std::vector<std::byte>& payload) {
  return write_frame(kSocket, static_cast<std::uint8_t>(type), id,
                     std::array<std::span<const std::byte>, 1>{payload});
}

/// How many tokens this process has sent.
class Counting {
 public:
  Counting(Orders orders, std::string device)
      : orders_(std::move(orders)), device_(std::move(device)) {}

  Status on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
    switch (static_cast<MessageType>(header.type)) {
      case MessageType::LoadDecoder:
        return on_load(MUSTER_TRY(decode_load_decoder(payload)));
      case MessageType::ProbeDecoder:
        return on_probe(MUSTER_TRY(decode_probe_decoder(payload)));
      case MessageType::Generate:
        if (header.id == kCanary) return answer_canary(MUSTER_TRY(decode_generate(payload)));
        return on_generate(header.id, MUSTER_TRY(decode_generate(payload)));
      case MessageType::Cancel:
        return send(MessageType::Cancel, header.id, {});
      default:
        return Error{ErrorKind::Corrupt, "unknown message"};
    }
  }

 private:
  Status on_probe(const ProbeDecoder& probe) const {
    if (orders_.count("die_at_probe") > 0) std::abort();
    if (orders_.count("hang_at_probe") > 0) ::raise(SIGSTOP);
    if (orders_.count("talk_at_probe") > 0) fmt::print(stderr, "{}\n", std::string(1 << 18, 'x'));
    DecoderVerdict verdict;
    for (const auto precision : probe.precisions) {
      const auto place = static_cast<double>(verdict.measures.size());
      DecoderMeasure measure{.precision = precision, .tokens_per_second = 100 * (place + 1)};
      if (probe.measures_divergence) measure.divergence = place / 1000;
      verdict.measures.push_back(measure);
    }
    return send(MessageType::DecoderVerdict, 0, encode(verdict));
  }

  Status on_load(const LoadDecoder& load) {
    has_prefix_cache_ = load.has_prefix_cache;
    if (orders_.count("full_on") > 0 && device_ == fmt::format("cpu:{}", orders_.at("full_on"))) {
      const Error error{ErrorKind::ResourceExhausted, "told to be full"};
      return send(MessageType::LoadFailed, 0, encode(LoadFailed{load.model_id, error}));
    }
    if (orders_.count("die_at_load") > 0) std::abort();
    if (orders_.count("exit_at_load") > 0) {
      fmt::print(stderr, "told to exit\n");
      std::exit(3);
    }
    if (orders_.count("hang_at_load") > 0) ::raise(SIGSTOP);
    const bool is_wrong =
        (load.has_prefix_cache && orders_.count("no_prefix_cache") > 0) ||
        (load.kv_cache_dtype != KvCacheDtype::Int8 && orders_.count("int8_cache") > 0);
    if (is_wrong || orders_.count("fail_load") > 0) {
      return send(MessageType::LoadFailed, 0,
                  encode(LoadFailed{load.model_id, {ErrorKind::Corrupt, "told not to load"}}));
    }
    return send(MessageType::DecoderReady, 0,
                encode(DecoderReady{.model_id = load.model_id,
                                    .vocab_size = kVocabSize,
                                    .length_max = order("length_max", kLengthMax),
                                    .block_count = kBlockCount,
                                    .thread_count = 1,
                                    .decoder_class = "counting"}));
  }

  Status answer_canary(const Generate& request) const {
    if (orders_.count("nan_canary") > 0) {
      return send(MessageType::Failed, kCanary, encode(no_numbers()));
    }
    const std::uint32_t step = orders_.count("wrong_canary") > 0 ? 2 : 1;
    Tokens told;
    for (std::uint32_t i = 1; i <= request.token_limit; ++i) {
      const std::uint32_t token = (request.ids.back() + i * step) % kVocabSize;
      told.tokens.push_back({.sequence = kCanary,
                             .token = token,
                             .is_prompt = false,
                             .logprobs = TokenLogprobs{.chosen = logprob_of(token), .top = {}}});
    }
    MUSTER_TRY(send(MessageType::Tokens, 0, encode(told)));
    return send(MessageType::Finished, kCanary, encode(Finished{FinishReason::Length}));
  }

  Status on_generate(std::uint64_t id, Generate request) {
    if (is_told("poison", request.ids)) {
      MUSTER_TRY(send(MessageType::Tokens, 0, encode(Tokens{})));  // of a part of the prompt
      std::abort();
    }
    if (is_told("kill_on", request.ids)) ::raise(SIGKILL);
    if (is_told("hang_on", request.ids)) ::raise(SIGSTOP);
    const auto length_max = order("length_max", kLengthMax);
    if (request.ids.size() + (request.token_limit > 0 ? 1 : 0) > length_max) {
      return send(MessageType::Failed, id,
                  encode(Failed{{ErrorKind::InvalidArgument, "no room for a reply"}}));
    }
    if (request.sampling.choice == order("fail_choice", UINT32_MAX)) {
      return send(MessageType::Failed, id,
                  encode(Failed{{ErrorKind::Internal, "told to fail this choice"}}));
    }
    const auto cached = cached_count(request);
    const auto left = static_cast<std::uint32_t>(request.ids.size()) - cached;
    if (left > 1) MUSTER_TRY(send(MessageType::StepBegun, 0, encode(StepBegun{left})));
    MUSTER_TRY(send(MessageType::Tokens, 0, encode(Tokens{.begun = {{id, cached}}, .tokens = {}})));
    MUSTER_TRY(score(id, request));
    MUSTER_TRY(count(id, request));
    served_.push_back(std::move(request));
    return Done{};
  }

  Status score(std::uint64_t id, const Generate& request) {
    if (request.score_from == 0 || orders_.count("no_scores") > 0) return Done{};
    for (std::size_t i = request.score_from; i < request.ids.size(); ++i) {
      die_if_due();
      const GeneratedToken told{.sequence = id,
                                .token = request.ids[i],
                                .is_prompt = true,
                                .logprobs = logprobs_of(request.sampling, request.ids[i])};
      MUSTER_TRY(send(MessageType::Tokens, 0, encode(Tokens{.begun = {}, .tokens = {told}})));
      ++sent_;
    }
    return Done{};
  }

  Status count(std::uint64_t id, Generate& request) {
    const auto length_max = order("length_max", kLengthMax);
    const auto wait_at = order("wait_at", UINT32_MAX);
    const auto limit = request.token_limit + order("one_more", 0);
    for (std::uint32_t i = 0; i < limit && request.ids.size() < length_max; ++i) {
      if (request.reply_count + i == wait_at) return Done{};
      if (request.reply_count + i == order("fail_at", UINT32_MAX)) {
        return send(MessageType::Failed, id,
                    encode(Failed{{ErrorKind::Internal, "told to fail here"}}));
      }
      if (request.reply_count + i == order("nan_at", UINT32_MAX)) {
        return send(MessageType::Failed, id, encode(no_numbers()));
      }
      die_if_due();
      const bool is_first = request.reply_count + i == 0;
      const std::uint32_t step = 1 + (is_first ? request.sampling.choice : 0);
      const std::uint32_t token = (request.ids.back() + step) % kVocabSize;
      const auto& stops = request.stop_ids;
      if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
        return finish(id, FinishReason::Stop);
      }
      const GeneratedToken told{.sequence = id,
                                .token = token,
                                .is_prompt = false,
                                .logprobs = logprobs_of(request.sampling, token)};
      MUSTER_TRY(send(MessageType::Tokens, 0, encode(Tokens{.begun = {}, .tokens = {told}})));
      request.ids.push_back(token);
      ++sent_;
      // At once, not at the next token: else a stream that comes later, alone and without fault,
      // finds a worker that dies before its first token.
      die_if_due();
    }
    return finish(id, FinishReason::Length);
  }

  // Ids that it has in common with an earlier one, in whole blocks, and without its last.
  std::uint32_t cached_count(const Generate& request) const {
    if (!has_prefix_cache_ || request.ids.size() <= kBlockTokens) return 0;
    std::size_t longest = 0;
    for (const auto& earlier : served_) {
      if (earlier.prefix_scope != request.prefix_scope) continue;
      const auto end = std::mismatch(request.ids.begin(), request.ids.end() - 1,
                                     earlier.ids.begin(), earlier.ids.end())
                           .first;
      longest = std::max(longest, static_cast<std::size_t>(end - request.ids.begin()));
    }
    return static_cast<std::uint32_t>(longest) / kBlockTokens * kBlockTokens;
  }

  std::optional<TokenLogprobs> logprobs_of(const SamplingOptions& sampling,
                                           std::uint32_t token) const {
    if (!sampling.logprob_count || orders_.count("no_logprobs") > 0) return std::nullopt;
    TokenLogprobs logprobs{.chosen = logprob_of(token), .top = {}};
    for (std::uint32_t i = 0; i < std::min(*sampling.logprob_count, token + 1); ++i) {
      logprobs.top.emplace_back(token - i, logprob_of(token - i));
    }
    return logprobs;
  }

  Status finish(std::uint64_t id, FinishReason reason) const {
    if (orders_.count("lose_end") > 0) std::abort();
    return send(MessageType::Finished, id, encode(Finished{reason}));
  }

  std::uint32_t order(const char* name, std::uint32_t otherwise) const {
    const auto found = orders_.find(name);
    return found == orders_.end() ? otherwise : found->second;
  }

  // Of a prompt that holds a token.
  bool is_told(const char* name, const std::vector<std::uint32_t>& ids) const {
    const auto found = orders_.find(name);
    return found != orders_.end() && std::find(ids.begin(), ids.end(), found->second) != ids.end();
  }

  void die_if_due() const {
    die_if_told("die_after", SIGABRT);
    die_if_told("kill_after", SIGKILL);
  }

  void die_if_told(const char* order, int signal) const {
    const auto found = orders_.find(order);
    if (found != orders_.end() && sent_ >= found->second) ::raise(signal);
  }

  const Orders orders_;
  const std::string device_;
  bool has_prefix_cache_ = false;
  std::vector<Generate> served_;  // with their replies
  std::uint32_t sent_ = 0;
};

Status run(std::string device) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto orders = read_orders();
  Hello hello{.build = std::string(build_name()), .engine_class = "counting"};
  if (orders.count("other_build") > 0) hello.build = "0.0.1 (other)";
  MUSTER_TRY(send(MessageType::Hello, 0, encode(hello)));
  Counting counting(orders, std::move(device));
  return read_frames(kSocket, [&](const FrameHeader& header, std::span<const std::byte> payload) {
    return counting.on_frame(header, payload);
  });
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  std::string device;
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == muster::kWorkerDeviceFlag) device = argv[i + 1];
    if (argv[i] == muster::kWorkerLivenessFlag) {
      (void)muster::keep_liveness_pipe(muster::UniqueFd(std::atoi(argv[i + 1])));
    }
  }
  return muster::run(std::move(device)) ? 0 : 1;
}
