// The parent's side of a decoder: it owns prompts and tokens, the worker owns nothing. So a worker
// that dies costs time and no text: the next one is given each prompt with the tokens that have
// come, and goes on behind them. A worker that dies without a token is counted, because the
// sequences themselves may be what kills it.

#include "jobs/decoder_session.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

// A process that closed its socket is gone in milliseconds.
constexpr Duration kReapLimit = std::chrono::seconds(1);
// So many workers are given the same sequences and die without a token before that is the end.
constexpr std::uint32_t kFruitlessDeathsMost = 3;
// The same where somebody outside kills them: a guard of memory (systemd-oomd) does so to a worker
// that takes too much, whenever it loads the decoder or has these sequences.
constexpr std::uint32_t kBarrenDeathsMost = 8;
// Nobody has looked for so long: this process was stopped itself (Ctrl-Z).
constexpr Duration kPause = std::chrono::seconds(2);

}  // namespace

DecoderSession::DecoderSession(DecoderSessionOptions options, DecoderSessionEvents events,
                               const Clock& clock)
    : options_(std::move(options)),
      events_(std::move(events)),
      clock_(clock),
      stamp_(options_.source) {}

DecoderSession::~DecoderSession() {
  if (process_) process_->close();
}

Result<std::unique_ptr<DecoderSession>> DecoderSession::start(DecoderSessionOptions options,
                                                              DecoderSessionEvents events,
                                                              const Clock& clock) {
  std::unique_ptr<DecoderSession> session(
      new DecoderSession(std::move(options), std::move(events), clock));
  MUSTER_TRY(session->start_worker());
  return session;
}

Status DecoderSession::start_worker() {
  process_ = MUSTER_TRY(WorkerProcess::start({.program = options_.worker_program,
                                              .torch_root = options_.torch_root,
                                              .device = options_.device}));
  watch_ = {};
  // The worker reads it once it has greeted; nothing is lost if that greeting is refused.
  send(MessageType::LoadDecoder, 0,
       encode(LoadDecoder{.source = options_.source,
                          .precision = options_.precision,
                          .kv_cache_dtype = options_.kv_cache_dtype,
                          .cpus = options_.device.cpus,
                          .cache_bytes = options_.cache_bytes,
                          .has_prefix_cache = options_.has_prefix_cache,
                          .drafted_tokens_most = options_.drafted_tokens_most}));
  for (const auto& [id, sequence] : sequences_) {
    send(MessageType::Generate, id, encode(sequence.request));
  }
  return Done{};
}

// What one model has begun is not gone on with by another.
Status DecoderSession::check_source() {
  if (!stamp_.has_changed()) return Done{};
  changed_ = Error{ErrorKind::Corrupt,
                   fmt::format("{} has changed since it was loaded first, and a reply must be of "
                               "one model",
                               options_.source)};
  return *changed_;
}

// A worker that is gone is noticed by the next read.
void DecoderSession::send(MessageType type, std::uint64_t id, std::vector<std::byte> payload) {
  if (process_) {
    (void)process_->channel().send(static_cast<std::uint8_t>(type), id, std::move(payload));
  }
}

std::uint64_t DecoderSession::submit(SequenceRequest request) {
  const std::uint64_t id = next_id_++;
  Generate generate{.ids = std::move(request.ids),
                    .token_limit = request.token_limit,
                    .stop_ids = std::move(request.stop_ids),
                    .sampling = std::move(request.sampling)};
  if (sequences_.empty()) watch_.start_over(clock_.now());
  send(MessageType::Generate, id, encode(generate));
  sequences_.emplace(id, Sequence{std::move(generate)});
  return id;
}

void DecoderSession::cancel(std::uint64_t id) {
  if (sequences_.erase(id) > 0) send(MessageType::Cancel, id, {});
}

std::optional<pid_t> DecoderSession::worker_pid() const {
  return process_ ? std::optional(process_->pid()) : std::nullopt;
}

Status DecoderSession::step(Duration timeout) {
  if (changed_) return *changed_;
  if (!process_) {
    const auto left = restart_at_ - clock_.now();
    if (left > Duration{0}) {
      const auto pause = std::chrono::ceil<std::chrono::milliseconds>(std::min(left, timeout));
      (void)::poll(nullptr, 0, static_cast<int>(pause.count()));
    }
    if (clock_.now() < restart_at_) return Done{};
    MUSTER_TRY(check_source());
    ++restart_count_;
    return start_worker();
  }
  MUSTER_TRY(wait(timeout));
  end_if_hung(timeout);
  return Done{};
}

// What it is killed for counts as its own fault.
void DecoderSession::end_if_hung(Duration timeout) {
  const auto now = clock_.now();
  if (now - std::exchange(looked_at_, now) > timeout + kPause) watch_.start_over(now);
  if (!process_ || !is_ready_ || sequences_.empty()) return;
  if (now < watch_.until(options_.silence_most)) return;
  watch_.start_over(now);
  events_.on_notice(fmt::format("{}: the worker has said nothing for too long and is ended",
                                options_.device.name()));
  process_->kill();
}

Status DecoderSession::wait(Duration timeout) {
  const short write = process_->channel().wants_write() ? POLLOUT : 0;
  pollfd waiting[] = {{process_->channel().fd(), static_cast<short>(POLLIN | write), 0},
                      {process_->stderr_fd(), POLLIN, 0}};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(timeout, Duration{0}));
  if (::poll(waiting, 2, static_cast<int>(ms.count())) <= 0) return Done{};
  if (waiting[1].revents != 0) {
    process_->read_stderr([this](const std::string& line) { last_words_ = line; });
  }
  if ((waiting[0].revents & POLLOUT) != 0) (void)process_->channel().flush();
  return (waiting[0].revents & ~POLLOUT) != 0 ? read() : Status(Done{});
}

Status DecoderSession::read() {
  std::optional<Error> refused;  // by us, not by the stream
  // A broken stream is a death like any other; a message that we refuse is an error, since the next
  // worker would send it again.
  const auto more = process_->channel().read_available(
      [&](const FrameHeader& header, std::span<const std::byte> payload) -> Status {
        auto handled = on_frame(header, payload);
        if (!handled) refused = handled.error();
        return handled;
      });
  if (refused) return *refused;
  if (more && *more) return Done{};
  return on_death();
}

Status DecoderSession::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  const auto type = static_cast<MessageType>(header.type);
  const auto now = clock_.now();
  if (type == MessageType::Tokens) watch_.on_step_done(now);
  watch_.expect(now, sequences_.size());  // a token of each; else it says so
  switch (type) {
    case MessageType::StepBegun:
      return on_step_begun(payload);
    case MessageType::Hello:
      return on_hello(payload);
    case MessageType::DecoderReady: {
      const auto ready = MUSTER_TRY(decode_decoder_ready(payload));
      // It may have changed while this one was loading it.
      if (restart_count_ > 0) MUSTER_TRY(check_source());
      is_ready_ = true;
      length_max_ = ready.length_max;
      events_.on_ready(ready);
      return Done{};
    }
    case MessageType::LoadFailed:
      return MUSTER_TRY(decode_load_failed(payload)).error;
    case MessageType::Tokens:
      return on_tokens(payload);
    case MessageType::Cancel:    // it has let go of it
    case MessageType::CacheUse:  // nobody is shown it
      return Done{};
    case MessageType::Finished: {
      const auto finished = MUSTER_TRY(decode_finished(payload));
      // Nothing of one that was cancelled meanwhile.
      if (sequences_.erase(header.id) > 0) events_.on_finished(header.id, finished.reason);
      return Done{};
    }
    case MessageType::Failed: {
      const auto failed = MUSTER_TRY(decode_failed(payload));
      if (sequences_.erase(header.id) > 0) events_.on_failed(header.id, of_source(failed.error));
      return Done{};
    }
    default:
      return Error{ErrorKind::Corrupt,
                   fmt::format("the worker sent an unknown message: type {}", header.type)};
  }
}

// A worker says that what it computes is no number, and not with which file.
Error DecoderSession::of_source(const Error& error) const {
  if (error.kind != ErrorKind::Corrupt) return error;
  return {error.kind, fmt::format("{}: {}", options_.source, error.message)};
}

Status DecoderSession::on_hello(std::span<const std::byte> payload) {
  const auto hello = MUSTER_TRY(decode_hello(payload));
  if (hello.protocol == Hello::kProtocol && hello.build == options_.build) return Done{};
  return Error{ErrorKind::Unsupported,
               fmt::format("{} is of another build: it is {}, this is {}",
                           options_.worker_program.string(), hello.build, options_.build)};
}

// More than a step may have is no reason to wait for longer.
Status DecoderSession::on_step_begun(std::span<const std::byte> payload) {
  const auto begun = MUSTER_TRY(decode_step_begun(payload));
  watch_.expect(clock_.now(), std::min(begun.token_count, LoadDecoder{}.step_tokens_most));
  return Done{};
}

Status DecoderSession::on_tokens(std::span<const std::byte> payload) {
  auto message = MUSTER_TRY(decode_tokens(payload));
  // A step without a token is no fruit: the next one may be what kills every worker.
  if (message.tokens.empty()) return Done{};
  restarts_.on_batch_served();
  fruitless_deaths_ = barren_deaths_ = 0;
  for (auto& token : message.tokens) {
    const auto found = sequences_.find(token.sequence);
    if (found == sequences_.end()) continue;  // cancelled meanwhile
    auto& request = found->second.request;
    request.ids.push_back(token.token);
    ++request.reply_count;
    --request.token_limit;
    events_.on_token(token);
  }
  return Done{};
}

// Its sequences are continued by the next worker. One whose last token had come, and its end not,
// has nothing left to ask for.
Status DecoderSession::on_death() {
  process_->read_stderr([this](const std::string& line) { last_words_ = line; });
  process_->kill_if_alive();
  const auto death = process_->reap(kReapLimit).value_or(WorkerDeath{"it does not end", true, 0});
  const bool was_ready = std::exchange(is_ready_, false);
  process_.reset();
  const auto delay = restarts_.on_death(
      clock_.now(), {.was_ready = was_ready, .is_own_fault = death.is_own_fault});
  const auto words = last_words_.empty() ? "" : ": " + std::exchange(last_words_, {});
  if (was_ready && death.is_own_fault) ++fruitless_deaths_;
  const bool is_killed_again = ++barren_deaths_ >= kBarrenDeathsMost;
  if (!delay || fruitless_deaths_ >= kFruitlessDeathsMost || is_killed_again) {
    fruitless_deaths_ = barren_deaths_ = 0;  // whoever asks again begins anew
    return Error{ErrorKind::Unavailable, fmt::format("{}: the worker cannot be kept alive: {}{}",
                                                     options_.device.name(), death.reason, words)};
  }
  std::vector<std::uint64_t> complete;
  for (const auto& [id, sequence] : sequences_) {
    const auto& request = sequence.request;
    const bool is_full = length_max_ > 0 && request.ids.size() >= length_max_;
    // A prompt that leaves no room has no end to lose: the next worker says what is wrong with it.
    if (request.reply_count > 0 && (request.token_limit == 0 || is_full)) complete.push_back(id);
  }
  for (const auto id : complete) {
    sequences_.erase(id);
    events_.on_finished(id, FinishReason::Length);
  }
  events_.on_notice(fmt::format("{}: the worker died ({}{}); it is started again and goes on",
                                options_.device.name(), death.reason, words));
  restart_at_ = clock_.now() + *delay;
  return Done{};
}

}  // namespace muster
