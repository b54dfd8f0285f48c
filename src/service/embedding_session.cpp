#include "service/embedding_session.h"

#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "service/precision_choice.h"

namespace muster {
namespace {

// Lower case as Python's str.lower(), which sentence-transformers applies for `do_lower_case`: full
// mappings without a language. Source: The Unicode Standard, section 3.13, toLowercase.
void append_lowercase(std::string_view text, std::string& out) {
  const auto size = static_cast<std::int32_t>(text.size());
  icu::UnicodeString::fromUTF8({text.data(), size})
      .toLower(icu::Locale::getRoot())
      .toUTF8String(out);
}

Result<std::string> find_prompt(const SentenceSpec& sentence,
                                const std::optional<std::string>& asked) {
  const auto name = asked ? asked : sentence.default_prompt;
  if (!name) return std::string();
  std::vector<std::string> names;
  for (const auto& prompt : sentence.prompts) {
    if (prompt.name == *name) return *name;
    names.push_back(prompt.name);
  }
  if (names.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the model has no prompts, so none is named: {}", *name)};
  }
  const auto nearest = nearest_name(*name, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("the model has no prompt of that name: {}; {}", *name,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : fmt::format("it has {}", fmt::join(names, ", ")))};
}

std::string prompt_text(const SentenceSpec& sentence, const std::string& name) {
  for (const auto& prompt : sentence.prompts) {
    if (prompt.name == name) return prompt.text;
  }
  return "";
}

Result<std::unique_ptr<TextEncoder>> make_text_encoder(const EmbedOptions& options,
                                                       const ModelFolder& folder,
                                                       const std::string& prompt_name) {
  auto tokenizer = MUSTER_TRY(Tokenizer::load(folder.path / "tokenizer.json"));
  const auto length_max = options.length_max.value_or(folder.sentence.length_max);
  if (length_max > folder.encoder.length_max()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--max-length is above what the model can take: {} of {}", length_max,
                             folder.encoder.length_max())};
  }
  if (length_max <= tokenizer->special_token_count()) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("--max-length leaves no room for text: {}, of which {} are special tokens",
                    length_max, tokenizer->special_token_count())};
  }
  if (tokenizer->vocab_size() > folder.encoder.vocab_size) {
    return Error{
        ErrorKind::Corrupt,
        fmt::format("{}: the tokenizer has more tokens than the model: {} and {}",
                    folder.path.string(), tokenizer->vocab_size(), folder.encoder.vocab_size)};
  }
  return std::make_unique<TextEncoder>(std::move(tokenizer),
                                       prompt_text(folder.sentence, prompt_name),
                                       folder.sentence.lowercase, length_max);
}

ModelRequest model_request(const EmbeddingSession& session) {
  return {.model_folder = std::filesystem::absolute(session.folder.path).string(),
          .device = DeviceKind::Cpu,  // the coordinator fills in each device's
          .pooling = session.pooling,
          .normalize = session.normalize};
}

Result<Verdict> measure(EmbeddingSession& session, const std::function<bool()>& cancelled) {
  Probe probe;
  probe.model = model_request(session);
  std::vector<TokenId> ids;
  for (const auto text : precision_texts()) {
    session.text_encoder->encode(text, ids);
    probe.lengths.push_back(static_cast<std::uint32_t>(ids.size()));
    probe.ids.insert(probe.ids.end(), ids.begin(), ids.end());
  }
  return session.coordinator->probe(probe, cancelled);
}

Status settle_precision(const EmbedOptions& options, const std::string& engine_class,
                        EmbeddingSession& session,
                        const std::function<void(const std::string&)>& on_notice,
                        const std::function<bool()>& cancelled) {
  if (options.precision) {
    session.precision = *options.precision;
    session.precision_reason = "asked for";
    return Done{};
  }
  const VerdictKey key{.model_hash = session.model_hash,
                       .processor = options.devices.front().model,
                       .engine_class = engine_class,
                       .pooling = std::string(pooling_name(session.pooling))};
  auto verdict = read_cached_verdict(options.cache_folder, key);
  const bool was_cached = verdict.has_value();
  if (!verdict) {
    on_notice("measuring which precision is fastest here (once for this model and processor)");
    verdict = MUSTER_TRY(measure(session, cancelled));
    if (const auto kept = write_cached_verdict(options.cache_folder, key, *verdict); !kept) {
      on_notice(fmt::format("the measurement cannot be kept: {}", kept.error().message));
    }
  }
  const auto choice = choose_precision(*verdict);
  session.precision = choice.precision;
  session.precision_reason = choice.reason + (was_cached ? " (kept from an earlier run)" : "");
  return Done{};
}

}  // namespace

TextEncoder::TextEncoder(std::unique_ptr<const Tokenizer> tokenizer, std::string prompt,
                         bool lowercase, std::uint32_t length_max)
    : tokenizer_(std::move(tokenizer)),
      scratch_(tokenizer_->make_scratch()),
      prompt_(std::move(prompt)),
      lowercase_(lowercase),
      length_max_(length_max) {}

Tokenizer::Encoded TextEncoder::encode(std::string_view text, std::vector<TokenId>& ids) {
  ids.clear();
  if (prompt_.empty() && !lowercase_) {
    return tokenizer_->encode(text, length_max_, *scratch_, ids);
  }
  buffer_ = prompt_;
  if (lowercase_) {
    append_lowercase(text, buffer_);
  } else {
    buffer_ += text;
  }
  return tokenizer_->encode(buffer_, length_max_, *scratch_, ids);
}

Result<EmbeddingSession> open_session(const EmbedOptions& options, CoordinatorEvents events,
                                      const Clock& clock, const std::function<bool()>& cancelled) {
  EmbeddingSession session;
  const auto path = MUSTER_TRY(find_model(options.model));
  session.folder = MUSTER_TRY(read_model_folder(path));
  session.pooling = options.pooling.value_or(session.folder.sentence.pooling);
  session.normalize = options.normalize.value_or(session.folder.sentence.normalize);
  session.prompt_name = MUSTER_TRY(find_prompt(session.folder.sentence, options.prompt_name));

  // The workers link torch while this process reads tokenizer and weights.
  const auto on_notice = events.on_notice;
  session.coordinator = MUSTER_TRY(Coordinator::start({.devices = options.devices,
                                                       .worker_program = options.worker_program,
                                                       .torch_root = options.torch_root,
                                                       .batch_tokens = options.batch_tokens,
                                                       .build = std::string(build_name())},
                                                      std::move(events), clock));
  session.text_encoder =
      MUSTER_TRY(make_text_encoder(options, session.folder, session.prompt_name));
  session.model_hash = MUSTER_TRY(model_hash(session.folder.path));
  const auto classes = MUSTER_TRY(session.coordinator->wait_for_greetings(cancelled));
  MUSTER_TRY(settle_precision(options, classes.front(), session, on_notice, cancelled));
  session.equality_class = fmt::format(
      "{} {} {}", session.model_hash, precision_name(session.precision), fmt::join(classes, " + "));
  session.coordinator->load(
      {.model = model_request(session), .precision = session.precision, .cpus = {}});
  return session;
}

std::string_view pooling_name(Pooling pooling) {
  switch (pooling) {
    case Pooling::Cls:
      return "cls";
    case Pooling::Mean:
      return "mean";
    case Pooling::Max:
      return "max";
    case Pooling::Last:
      return "last";
  }
  return "?";
}

}  // namespace muster
