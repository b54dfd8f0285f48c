// One reply: the worker loads while this process reads the tokenizer; then tokens in, text out. The
// cache is sized before the tokens are known, by a bound on their number.

#include "jobs/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/wall_clock.h"
#include "chat/decoder_text.h"
#include "jobs/decoder_cache.h"
#include "jobs/prompt_encoder.h"
#include "jobs/reply_text.h"
#include "modelfile/decoder_config.h"
#include "modelfile/model_description.h"
#include "spec/cpu_decoder_memory.h"

namespace muster {
namespace {

constexpr Duration kStepTime = std::chrono::milliseconds(100);
// What a chat template puts around a prompt, beside its variables.
constexpr std::uint64_t kTemplateTokensMost = 2048;
constexpr std::uint64_t kBlockTokens = 16;

std::uint64_t token_bytes(const GenerateOptions& options, const DecoderSpec& spec) {
  return token_cache_bytes(spec, kept_as(options.kv_cache_dtype, options.precision));
}

std::uint64_t cache_bytes(const GenerateOptions& options, const DecoderSpec& spec) {
  const auto most = generate_tokens_most(options, spec.length_max) + kBlockTokens;
  return most * token_bytes(options, spec);
}

// Of one that is too long no more is read than tells so: a frame to a worker has a limit, too.
Result<std::vector<TokenId>> prompt_ids(const GenerateOptions& options, const DecoderText& text,
                                        std::uint32_t length_max) {
  auto encoder =
      MUSTER_TRY(PromptEncoder::make(text, {.is_raw = options.is_raw,
                                            .system = options.system,
                                            .now_unix = static_cast<std::int64_t>(unix_seconds()),
                                            .template_variables = options.template_variables}));
  auto ids = MUSTER_TRY(encoder.encode(options.prompt, length_max));
  if (ids.size() >= length_max) return prompt_too_long(length_max);
  return ids;
}

/// The proportional set size of a process. Source: Linux, Documentation/filesystems/proc.rst,
/// smaps_rollup.
std::optional<std::uint64_t> memory_of(std::optional<pid_t> pid) {
  if (!pid) return std::nullopt;
  const auto file = read_file(fmt::format("/proc/{}/smaps_rollup", *pid));
  constexpr std::string_view kKey = "\nPss:";
  const auto at = file ? file->find(kKey) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const auto digit = file->find_first_of("0123456789", at);
  std::uint64_t kib = 0;
  if (digit == std::string::npos) return std::nullopt;
  std::from_chars(file->data() + digit, file->data() + file->size(), kib);
  return kib * 1024;
}

/// GenerateDecoder::unpacked_bytes. Cost: reads the headers of the files.
std::optional<std::uint64_t> unpacked_bytes(const GenerateOptions& options) {
  if (options.device.kind != DeviceKind::Cpu) return std::nullopt;
  const auto model = describe_model(options.source);
  if (!model || !model->decoder || !is_cpu_decoder(*model->decoder)) return std::nullopt;
  std::uint64_t sum = 0;
  for (const auto& unit : model->units) {
    const auto weights = cpu_decoder_weights(*model, unit, options.precision);
    if (!weights) return std::nullopt;
    sum += weights->total() - weights->counted();
  }
  return sum;
}

/// One reply on its way: what the session tells, and what becomes of it.
struct Reply {
  ReplyText text;
  std::optional<GenerateEnd> end = {};
  std::optional<Error> error = {};
};

/// What a session tells of the one reply, and when.
struct Watch {
  const Clock& clock;
  GenerateReport report;
  Reply* reply = nullptr;
  std::optional<TimePoint> ready_at = {};
  std::optional<TimePoint> first_at = {};
  TimePoint last_at{};

  void on_ready(const DecoderReady& ready) {
    if (!ready_at) ready_at = clock.now();
    report.decoder = GenerateDecoder{.weights_bytes = ready.weights_bytes,
                                     .thread_count = ready.thread_count,
                                     .decoder_class = ready.decoder_class};
  }
  void on_token(const GeneratedToken& token) {
    if (reply->text.is_stopped() || reply->error) return;
    last_at = clock.now();
    if (!first_at) first_at = last_at;
    if (const auto pushed = reply->text.push(token.token); !pushed) reply->error = pushed.error();
    if (reply->text.is_stopped()) reply->end = GenerateEnd::StopString;
  }
};

DecoderSessionEvents session_events(Watch& watch, const GenerateEvents& events) {
  DecoderSessionEvents on;
  on.on_ready = [&watch](const DecoderReady& ready) { watch.on_ready(ready); };
  on.on_token = [&watch](const GeneratedToken& token) { watch.on_token(token); };
  on.on_finished = [&watch](std::uint64_t, FinishReason reason) {
    if (watch.reply->end) return;
    watch.reply->end = reason == FinishReason::Stop ? GenerateEnd::StopToken : GenerateEnd::Length;
  };
  on.on_failed = [&watch](std::uint64_t, const Error& error) { watch.reply->error = error; };
  on.on_notice = events.on_notice;
  return on;
}

}  // namespace

GenerateEnd end_with(const ReplyText& text, GenerateEnd told) {
  return text.is_stopped() && told == GenerateEnd::Length ? GenerateEnd::StopString : told;
}

// The tokenizer and the template read UTF-8 and do not check it.
Status check_prompt_text(const char* what, std::string_view text) {
  const auto at = invalid_utf8_at(text);
  if (!at) return Done{};
  return Error{ErrorKind::InvalidArgument, fmt::format("{} is not UTF-8 at byte {}", what, *at)};
}

// A text has no more tokens than bytes, and neither has what a template writes of its variables.
std::uint64_t generate_tokens_most(const GenerateOptions& options, std::uint32_t length_max) {
  std::uint64_t tokens = options.prompt.size() + options.system.value_or("").size() +
                         kTemplateTokensMost + options.token_limit;
  if (!options.template_variables.empty()) {
    tokens += template_variables_json(options.template_variables).size();
  }
  return std::min<std::uint64_t>(tokens, length_max);
}

std::string_view generate_end_name(GenerateEnd end) {
  switch (end) {
    case GenerateEnd::StopToken:
    case GenerateEnd::StopString:
      return "stop";
    case GenerateEnd::Length:
      return "length";
    case GenerateEnd::Interrupted:
      return "interrupted";
  }
  return "?";
}

Result<GenerateReport> generate_text(const GenerateOptions& options, const GenerateEvents& events,
                                     const Clock& clock, const std::function<bool()>& cancelled) {
  const auto begin = clock.now();
  MUSTER_TRY(check_prompt_text("the prompt", options.prompt));
  if (options.prompt.empty()) {
    return Error{ErrorKind::InvalidArgument, "the prompt is empty: there is nothing to continue"};
  }
  MUSTER_TRY(check_prompt_text("the system's text", options.system.value_or("")));
  const auto spec = MUSTER_TRY(read_decoder_spec(options.source));
  auto stops = MUSTER_TRY(StopStrings::make(options.stops));
  Watch watch{.clock = clock, .report = {}};
  // The worker links torch and packs the weights while this process reads the tokenizer.
  const auto session = MUSTER_TRY(DecoderSession::start(
      session_options(options, cache_bytes(options, spec)), session_events(watch, events), clock));
  const auto text = MUSTER_TRY(load_decoder_text(options.source));
  Reply reply{.text = ReplyText(*text.tokenizer, options.is_raw, std::move(stops), events.on_text)};
  watch.reply = &reply;
  auto ids = MUSTER_TRY(prompt_ids(options, text, spec.length_max));
  auto& report = watch.report;
  report.prompt_tokens = static_cast<std::uint32_t>(ids.size());
  const auto asked_at = clock.now();
  session->submit(
      {.ids = std::move(ids),
       .token_limit = options.token_limit,
       .stop_ids = options.ignores_stop_ids ? std::vector<std::uint32_t>{} : text.stop_ids,
       .sampling = options.sampling});
  const auto unpacked = unpacked_bytes(options);  // while the worker loads
  while (!reply.end && !reply.error) {
    if (cancelled()) {
      reply.end = GenerateEnd::Interrupted;
      break;
    }
    MUSTER_TRY(session->step(kStepTime));
  }
  if (reply.error) return *reply.error;
  MUSTER_TRY(reply.text.finish());
  report.end = end_with(reply.text, *reply.end);
  report.reply_tokens = reply.text.token_count();
  report.restart_count = session->restart_count();
  if (report.decoder) report.decoder->unpacked_bytes = unpacked;
  if (!watch.first_at) return report;
  const std::uint64_t tokens = report.prompt_tokens + std::max(report.reply_tokens, 1U) - 1;
  report.cache_bytes =
      (tokens + kBlockTokens - 1) / kBlockTokens * kBlockTokens * token_bytes(options, spec);
  report.worker_bytes = memory_of(session->worker_pid());
  report.times = GenerateTimes{
      .first_token_seconds = seconds(*watch.first_at - begin),
      .prefill_seconds = seconds(*watch.first_at - std::max(asked_at, *watch.ready_at)),
      .decode_seconds = seconds(watch.last_at - *watch.first_at)};
  return report;
}

}  // namespace muster
