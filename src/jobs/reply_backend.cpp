// Prompts on their way to the workers, and tokens back to text. The fleet is given few more prompts
// than its workers can take at once, so that tokens are made of a prompt shortly before they are
// needed, and a loop that reads, writes and tokenises is never long away from its workers.

#include "jobs/reply_backend.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "jobs/reply_line.h"
#include "jobs/reply_seed.h"

namespace muster {
namespace {

constexpr Duration kLoadCheck = std::chrono::milliseconds(100);  // how soon Ctrl-C is seen
// Of one turn, for tokenising: workers that wait for the next one meanwhile lose little.
constexpr Duration kGiveTime = std::chrono::milliseconds(2);
// Prompts that wait with the fleet: as many as a worker can take at once.
constexpr std::size_t kWaitingMost = 32;

std::string state_name(const DecoderGroupView& group, bool was_ready) {
  switch (group.state) {
    case DecoderGroupView::State::Ready:
      return "ready";
    case DecoderGroupView::State::Failed:
      return "given up";
    case DecoderGroupView::State::Loading:
    case DecoderGroupView::State::Ended:
    case DecoderGroupView::State::Draining:  // nobody asks for it in a run
    case DecoderGroupView::State::Drained:
      break;
  }
  return was_ready || group.restart_count > 0 ? "restarting" : "starting";
}

}  // namespace

ReplyBackend::ReplyBackend(const RepliesOptions& options, CorpusSink sink, const Clock& clock)
    : options_(options),
      sink_(std::move(sink)),
      clock_(clock),
      source_(std::filesystem::absolute(options.source).string()),
      stamp_(source_),
      ready_at_(options.devices.size()),
      stopped_count_(options.devices.size()) {}

Result<std::unique_ptr<ReplyBackend>> ReplyBackend::open(const RepliesOptions& options,
                                                         const DecoderCache& cache,
                                                         std::int64_t now_unix, CorpusSink sink,
                                                         const Clock& clock,
                                                         const std::function<bool()>& cancelled) {
  std::unique_ptr<ReplyBackend> backend(new ReplyBackend(options, std::move(sink), clock));
  backend->stops_ = MUSTER_TRY(StopStrings::make(options.stops));
  backend->sink_.on_phase("starting workers");
  backend->fleet_ =
      MUSTER_TRY(DecoderFleet::start({.devices = options.devices,
                                      .worker_program = options.worker_program,
                                      .torch_root = options.torch_root,
                                      .build = std::string(build_name()),
                                      .source = backend->source_,
                                      .precision = options.precision,
                                      .kv_cache_dtype = options.kv_cache_dtype,
                                      .cache_bytes = cache.bytes,
                                      .spreads_streams = true,
                                      .has_prefix_cache = options.has_prefix_cache,
                                      .drafted_tokens_most = options.drafted_tokens_most,
                                      .asks_canary = true,
                                      .is_change_fatal = true},
                                     backend->fleet_events(), clock));
  MUSTER_TRY(backend->open_text(now_unix));
  backend->sink_.on_phase("loading the model");
  MUSTER_TRY(backend->await_worker(cancelled));
  backend->length_max_ = std::min(cache.length_most, backend->fleet_->length_max());
  backend->decoder_class_ = backend->fleet_->decoder_class();
  return backend;
}

Status ReplyBackend::open_text(std::int64_t now_unix) {
  text_ = MUSTER_TRY(load_decoder_text(options_.source));
  encoder_ =
      MUSTER_TRY(PromptEncoder::make(text_, {.is_raw = options_.is_raw,
                                             .system = options_.system,
                                             .now_unix = now_unix,
                                             .template_variables = options_.template_variables}));
  return Done{};
}

Status ReplyBackend::await_worker(const std::function<bool()>& cancelled) {
  while (!fleet_->is_ready()) {
    if (cancelled()) return Error{ErrorKind::Cancelled, "cancelled"};
    if (!fleet_->can_work()) return fleet_->cannot_work_error();
    wait(kLoadCheck);
    MUSTER_TRY(fleet_->step());
  }
  return Done{};
}

DecoderFleetEvents ReplyBackend::fleet_events() {
  DecoderFleetEvents events;
  events.on_begun = [this](StreamId id, std::uint32_t cached) { on_begun(id, cached); };
  events.on_token = [this](StreamId id, const GeneratedToken& token) { on_token(id, token.token); };
  events.on_finished = [this](StreamId id, FinishReason reason) { end(id, reason); };
  events.on_failed = [this](StreamId id, const Error& error, bool) { on_failed(id, error); };
  events.on_change = [this] { note_ready(); };
  events.on_notice = [this](const std::string& text, std::size_t group) {
    sink_.on_notice(fmt::format("{}: {}", options_.devices[group].name(), text));
  };
  return events;
}

void ReplyBackend::note_ready() {
  const auto groups = fleet_->groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool is_ready = groups[i].state == DecoderGroupView::State::Ready;
    if (is_ready && !ready_at_[i]) ready_at_[i] = clock_.now();
  }
}

void ReplyBackend::submit(const WindowRecord& record) { prompts_.push_back(&record); }

Status ReplyBackend::step(Duration timeout) {
  give_prompts();
  wait(can_give() ? Duration{0} : timeout);
  MUSTER_TRY(fleet_->step());
  if (fatal_) return *fatal_;
  return Done{};
}

bool ReplyBackend::can_give() const {
  return !prompts_.empty() && fleet_->waiting_count() < kWaitingMost;
}

void ReplyBackend::give_prompts() {
  const auto until = clock_.now() + kGiveTime;
  while (can_give() && clock_.now() < until) {
    const auto& record = *prompts_.front();
    prompts_.pop_front();
    give(record);
  }
}

void ReplyBackend::give(const WindowRecord& record) {
  const auto& prompt = record.entry.text;
  auto ids = record.is_conversation ? encoder_->encode_messages(prompt, length_max_)
                                    : encoder_->encode(prompt, length_max_);
  if (!ids) return sink_.on_failed(record.key, ids.error());
  const auto count = static_cast<std::uint32_t>(ids->size());
  if (count >= length_max_) return sink_.on_failed(record.key, prompt_too_long(length_max_));
  sink_.on_tokens(record.key, {.token_count = count, .is_truncated = false});
  auto sampling = options_.sampling;
  sampling.seed = reply_seed(sampling.seed, record.number);
  auto reply = std::make_unique<Reply>(*text_.tokenizer, options_.is_raw, *stops_);
  reply->key = record.key;
  reply->prompt_token_count = count;
  if (sampling.temperature > 0) reply->seed = sampling.seed;
  const auto id = fleet_->submit(
      {.ids = *std::move(ids),
       .token_limit = std::min(options_.token_limit, length_max_ - count),
       .stop_ids = options_.ignores_stop_ids ? std::vector<std::uint32_t>{} : text_.stop_ids,
       .sampling = std::move(sampling)});
  replies_.emplace(id, std::move(reply));
}

// Until a worker has something, or the fleet's time has come.
void ReplyBackend::wait(Duration most) const {
  const auto until = std::min(clock_.now() + most, fleet_->next_deadline());
  const auto rest = std::max(until - clock_.now(), Duration{0});
  pollfd waiting{fleet_->wait_fd(), POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(rest).count();
  (void)::poll(&waiting, 1, static_cast<int>(ms));
}

// Of a reply that goes on elsewhere its own beginning counts: that was computed but for this.
void ReplyBackend::on_begun(StreamId id, std::uint32_t cached_count) {
  const auto found = replies_.find(id);
  if (found != replies_.end() && !found->second->cached_count) {
    found->second->cached_count = cached_count;
  }
}

void ReplyBackend::on_token(StreamId id, std::uint32_t token) {
  const auto found = replies_.find(id);
  if (found == replies_.end()) return;
  auto& text = found->second->text;
  (void)text.push(token);  // it is only put to the content
  if (!text.is_stopped()) return;
  if (const auto group = fleet_->group_of(id)) ++stopped_count_[*group];
  fleet_->cancel(id);
  end(id, FinishReason::Stop);
}

void ReplyBackend::end(StreamId id, FinishReason reason) {
  const auto found = replies_.find(id);
  if (found == replies_.end()) return;
  const auto reply = std::move(found->second);
  replies_.erase(found);
  (void)reply->text.finish();
  // A stop string may be whole only with what was held back until now.
  if (reply->text.is_stopped()) reason = FinishReason::Stop;
  cached_token_count_ += reply->cached_count.value_or(0);
  const auto count = reply->text.token_count();
  sink_.on_result(reply->key, {.reply = reply_members({.text = reply->content,
                                                       .finish_reason = reason,
                                                       .prompt_tokens = reply->prompt_token_count,
                                                       .completion_tokens = count,
                                                       .seed = reply->seed}),
                               .reply_token_count = count});
}

// Workers that load another model than the first one fail at their canary, which does not say why.
Error ReplyBackend::why_none_works(const Error& told) const {
  if (!stamp_.has_changed()) return told;
  return {ErrorKind::Corrupt,
          fmt::format("{} has changed since it was loaded first, and the replies of a run must be "
                      "of one model",
                      source_)};
}

// Where no worker can work any more it is not this prompt's fault. One that computes what is no
// number does not say with which file.
void ReplyBackend::on_failed(StreamId id, const Error& error) {
  const auto found = replies_.find(id);
  if (found == replies_.end()) return;
  const auto key = found->second->key;
  replies_.erase(found);
  if (!fleet_->can_work()) {
    if (!fatal_) fatal_ = why_none_works(error);
    return;
  }
  const bool is_of_model = error.kind == ErrorKind::Corrupt;
  const auto message = is_of_model ? fmt::format("{}: {}", source_, error.message) : error.message;
  sink_.on_failed(key, {error.kind, message});
}

CorpusBackendStatus ReplyBackend::status() const {
  CorpusBackendStatus status;
  if (!fleet_) return status;
  const auto now = clock_.now();
  const auto groups = fleet_->groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& group = groups[i];
    const auto& ready_at = ready_at_[i];
    auto& shown = status.devices.emplace_back();
    shown.name = options_.devices[i].name();
    shown.text_count = group.finished_count + stopped_count_[i];
    shown.token_count = group.token_count;
    shown.ready_seconds = ready_at ? seconds(now - *ready_at) : 0;
    shown.restart_count = group.restart_count;
    shown.weights_bytes = ready_at ? fleet_->weights_bytes() : 0;
    shown.state = state_name(group, ready_at.has_value());
    shown.reason = group.reason;
    if (ready_at) status.ready_at = std::min(status.ready_at.value_or(*ready_at), *ready_at);
  }
  return status;
}

std::optional<double> ReplyBackend::stop() {
  replies_.clear();
  fleet_.reset();
  return std::nullopt;
}

}  // namespace muster
