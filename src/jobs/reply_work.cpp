// What of a run is about replies: what binds them to a model and to the options, and their files.

#include "jobs/reply_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/wall_clock.h"
#include "jobs/finished_output.h"
#include "jobs/input_identity.h"
#include "jobs/output_parts.h"
#include "jobs/replies_ahead.h"
#include "jobs/run_output.h"
#include "jobs/stream_output.h"
#include "modelfile/decoder_config.h"
#include "modelfile/decoder_hash.h"

namespace muster {
namespace {

// What an interrupted run was given by its machine, and goes on with.
constexpr const char* kTime = "the time of chat templates";  // seconds since 1970
constexpr const char* kContext = "the context";              // tokens

template <typename Number>
std::optional<Number> number_in(const RunIdentity& identity, const char* name) {
  const auto* text = value_in(identity, name);
  if (text == nullptr) return std::nullopt;
  Number number = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::string on_or_off(bool is_on) { return is_on ? "on" : "off"; }

// Only where tokens are drawn does all of it count.
void add_sampling(const SamplingOptions& sampling, RunIdentity& identity) {
  const auto add = [&](const char* name, auto value) {
    identity.emplace_back(name, fmt::format("{}", value));
  };
  add("--temperature", sampling.temperature);
  add("--repetition-penalty", sampling.repetition_penalty);
  add("--presence-penalty", sampling.presence_penalty);
  add("--frequency-penalty", sampling.frequency_penalty);
  if (sampling.temperature <= 0) return;
  add("--top-k", sampling.top_k);
  add("--top-p", sampling.top_p);
  add("--min-p", sampling.min_p);
  add("--seed", sampling.seed);
}

}  // namespace

ReplyWork::ReplyWork(const RepliesOptions& options, RunFiles files, const Clock& clock)
    : options_(options), files_(std::move(files)), clock_(clock) {}

// The files are hashed before a worker reads them: a change that comes between is noticed at the
// end.
Result<std::unique_ptr<CorpusBackend>> ReplyWork::open(CorpusSink sink,
                                                       const std::function<bool()>& cancelled) {
  const auto spec = MUSTER_TRY(read_decoder_spec(options_.source));
  hash_ = MUSTER_TRY(decoder_hash(options_.source));
  const auto then = options_.resume ? interrupted_identity(files_) : RunIdentity{};
  const auto length_then = number_in<std::uint32_t>(then, kContext);
  const auto& memory = options_.memory;
  const auto kept = kept_as(options_.kv_cache_dtype, options_.precision);
  const auto cache = length_then && *length_then <= spec.length_max
                         ? cache_for(spec, kept, *length_then, memory)
                         : fit_cache(spec, kept, spec.length_max, memory);
  const auto now_unix =
      number_in<std::int64_t>(then, kTime).value_or(static_cast<std::int64_t>(unix_seconds()));
  auto backend =
      MUSTER_TRY(ReplyBackend::open(options_, cache, now_unix, std::move(sink), clock_, cancelled));
  if (!options_.is_raw && backend->shows_date()) now_unix_ = now_unix;
  length_max_ = backend->length_max();
  decoder_class_ = backend->decoder_class();
  backend_ = backend.get();
  return std::unique_ptr<CorpusBackend>(std::move(backend));
}

// A bad record that was skipped is in the output, and one that was not has ended the run: whether
// they are skipped may change.
RunIdentity ReplyWork::identity() const {
  auto identity = input_identity(options_.input);
  identity.emplace_back("--max-tokens", std::to_string(options_.token_limit));
  identity.emplace_back("--stop", options_.stops.empty() ? "none" : texts_value(options_.stops));
  identity.emplace_back("--system", options_.system ? text_value(*options_.system) : "none");
  identity.emplace_back("--raw", on_or_off(options_.is_raw));
  if (!options_.template_variables.empty()) {
    identity.emplace_back("--chat-template-kwargs",
                          template_variables_json(options_.template_variables));
  }
  identity.emplace_back("--ignore-eos", on_or_off(options_.ignores_stop_ids));
  add_sampling(options_.sampling, identity);
  identity.emplace_back(kPrecisionEntry, std::string(decoder_precision_name(options_.precision)));
  // What is the same as without the flag is the same run, and one from before there was a flag.
  const auto kept = kept_as(options_.kv_cache_dtype, options_.precision);
  if (kept != kept_as(KvCacheDtype::Auto, options_.precision)) {
    identity.emplace_back("--kv-cache-dtype", std::string(kv_cache_dtype_name(kept)));
  }
  identity.emplace_back("the model", hash_);
  if (now_unix_) identity.emplace_back(kTime, std::to_string(*now_unix_));
  identity.emplace_back(kContext, std::to_string(length_max_));
  identity.emplace_back(kEqualityClassEntry, decoder_class_);
  return identity;
}

Result<std::optional<std::string>> ReplyWork::difference_from(const RunIdentity& then) {
  if (hash_.empty()) hash_ = MUSTER_TRY(decoder_hash(options_.source));
  now_unix_ = number_in<std::int64_t>(then, kTime);
  length_max_ = number_in<std::uint32_t>(then, kContext).value_or(0);
  return identity_difference(without_entry(then, kEqualityClassEntry),
                             without_entry(identity(), kEqualityClassEntry));
}

Result<std::unique_ptr<RecordsAhead>> ReplyWork::open_ahead(
    std::optional<std::uint64_t> resumed_at) {
  auto run = identity_hash(identity());
  if (!resumed_at) {
    return std::unique_ptr<RecordsAhead>(std::make_unique<RepliesAhead>(files_, std::move(run)));
  }
  auto ahead = MUSTER_TRY(RepliesAhead::reopen(files_, std::move(run), *resumed_at));
  return std::unique_ptr<RecordsAhead>(std::move(ahead));
}

Result<std::unique_ptr<RecordOutput>> ReplyWork::open_output(
    std::optional<RunResumption>& resumption) {
  using Output = std::unique_ptr<RecordOutput>;
  if (options_.stream) {
    return Output(std::make_unique<StreamOutput>(*options_.stream, OutputKind::Replies));
  }
  return Output(MUSTER_TRY(RunOutput::open(files_, reply_parts(files_), identity(),
                                           std::exchange(resumption, std::nullopt))));
}

Result<OutputRecord> ReplyWork::record() {
  const auto hash = decoder_hash(options_.source);
  if (!hash || *hash != hash_) {
    return Error{
        ErrorKind::Corrupt,
        fmt::format("{} has changed while it was used: replies may be of either model{}; "
                    "run again",
                    options_.source.string(), options_.stream ? "" : ", and none is kept")};
  }
  OutputRecord record;
  record.kind = OutputKind::Replies;
  record.model = std::filesystem::absolute(options_.source).lexically_normal().string();
  record.model_hash = hash_;
  record.equality_class = decoder_class_;
  record.precision = decoder_precision_name(options_.precision);
  record.identity = identity();
  return record;
}

}  // namespace muster
