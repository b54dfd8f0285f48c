// Streams on their way to workers and tokens on their way back. What a worker is sent goes out at
// the end of a step, outside of all callbacks, so that these may submit and cancel as they like.

#include "coordinator/decoder_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/steps.h"

namespace muster {

DecoderFleet::DecoderFleet(DecoderFleetOptions options, DecoderFleetEvents events,
                           const Clock& clock)
    : options_(std::move(options)),
      events_(std::move(events)),
      clock_(clock),
      runner_({.program = options_.worker_program,
               .torch_root = options_.torch_root,
               .group_count = options_.devices.size()},
              signal_.fd(), clock),
      groups_(options_.devices.size()),
      prefixes_(options_.devices.size()) {}

DecoderFleet::~DecoderFleet() = default;

Result<std::unique_ptr<DecoderFleet>> DecoderFleet::start(DecoderFleetOptions options,
                                                          DecoderFleetEvents events,
                                                          const Clock& clock) {
  std::unique_ptr<DecoderFleet> fleet(
      new DecoderFleet(std::move(options), std::move(events), clock));
  for (std::size_t i = 0; i < fleet->groups_.size(); ++i) MUSTER_TRY(fleet->start_group(i));
  return fleet;
}

StreamId DecoderFleet::submit(StreamRequest request) {
  const StreamId id = next_id_++;
  streams_.emplace(id, Stream{.request = {.ids = std::move(request.ids),
                                          .token_limit = request.token_limit,
                                          .stop_ids = std::move(request.stop_ids),
                                          .prefix_scope = request.prefix_scope,
                                          .sampling = std::move(request.sampling)},
                              .group = std::nullopt});
  waiting_.insert(id);
  signal_.wake();
  return id;
}

bool DecoderFleet::cancel(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return false;
  const auto& stream = found->second;
  if (stream.group) {
    auto& group = groups_[*stream.group];
    group.streams.erase(id);
    group.owed.emplace(id, stream.request.ids.size());
    cancelled_.emplace_back(*stream.group, id);
  }
  const bool was_given = stream.was_given;
  waiting_.erase(id);
  streams_.erase(found);
  signal_.wake();
  return was_given;
}

bool DecoderFleet::is_ready() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.state == State::Ready; });
}

bool DecoderFleet::can_work() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return group.state == State::Ready ||
           (group.state != State::Failed && group.failed_start_count < kFailedStartsMost);
  });
}

std::vector<DecoderGroupView> DecoderFleet::groups() const {
  std::vector<DecoderGroupView> views;
  for (const auto& group : groups_) {
    views.push_back({.state = group.state,
                     .reason = group.reason,
                     .stream_count = group.streams.size(),
                     .restart_count = group.restart_count});
  }
  return views;
}

Status DecoderFleet::step() {
  signal_.begin_step();
  MUSTER_TRY(runner_.wait(Duration{0}));
  MUSTER_TRY(runner_.handle(*this));
  check_time(clock_.now());
  settle();
  runner_.watch_writes();
  signal_.end_step();
  if (signal_.take_change()) events_.on_change();
  return Done{};
}

TimePoint DecoderFleet::next_deadline() const {
  if (signal_.is_due()) return clock_.now();
  auto next = TimePoint::max();
  for (const auto& group : groups_) {
    for (const auto& at : {group.restart_at, group.end_by, silent_at(group)}) {
      if (at) next = std::min(next, *at);
    }
  }
  return next;
}

// ---- What workers say ----

Status DecoderFleet::on_frame(std::size_t group, std::size_t /*member*/, const FrameHeader& header,
                              std::span<const std::byte> payload) {
  const auto state = groups_[group].state;
  // What one that is being ended still says was lost with its streams.
  if (state == State::Ended || state == State::Failed) return Done{};
  groups_[group].heard_at = clock_.now();
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Hello:
      return on_hello(group, payload);
    case MessageType::DecoderReady:
      return on_decoder_ready(group, MUSTER_TRY(decode_decoder_ready(payload)));
    case MessageType::LoadFailed:
      on_load_failed(group, MUSTER_TRY(decode_load_failed(payload)).error);
      return Done{};
    case MessageType::Tokens:
      return on_tokens(group, MUSTER_TRY(decode_tokens(payload)));
    case MessageType::Finished: {
      const auto finished = MUSTER_TRY(decode_finished(payload));
      if (take(group, header.id)) events_.on_finished(header.id, finished.reason);
      return Done{};
    }
    case MessageType::Failed: {
      const auto failed = MUSTER_TRY(decode_failed(payload));
      if (take(group, header.id)) events_.on_failed(header.id, failed.error, true);
      return Done{};
    }
    case MessageType::Cancel:
      groups_[group].owed.erase(header.id);
      return Done{};
    default:
      return Error{ErrorKind::Corrupt,
                   fmt::format("the worker sent an unknown message: type {}", header.type)};
  }
}

// A program of another build that was put there while others work is no reason to end these.
Status DecoderFleet::on_hello(std::size_t index, std::span<const std::byte> payload) {
  auto& group = groups_[index];
  const auto hello = MUSTER_TRY(decode_hello(payload));
  if (hello.protocol == Hello::kProtocol && hello.build == options_.build) {
    if (group.started_at) {
      const auto took = clock_.now() - *std::exchange(group.started_at, std::nullopt);
      longest_greeting_ = std::max(longest_greeting_.value_or(took), took);
    }
    return Done{};
  }
  Error error{ErrorKind::Unsupported,
              fmt::format("{} is of another build: it is {}, this is {}",
                          options_.worker_program.string(), hello.build, options_.build)};
  if (length_max_ == 0) fatal_ = error;  // none was ever ready
  return error;
}

Status DecoderFleet::on_decoder_ready(std::size_t index, const DecoderReady& ready) {
  const bool is_first = length_max_ == 0;
  const bool is_same = ready.length_max == length_max_ && ready.vocab_size == vocab_size_ &&
                       ready.weights_bytes == weights_bytes_;
  if (!is_first && !is_same) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{} has changed since it was loaded first; the server must be "
                             "restarted to serve what is there now",
                             options_.source)};
  }
  auto& group = groups_[index];
  group.state = State::Ready;
  group.reason.clear();
  group.was_ready = group.was_ever_ready = true;
  group.failed_start_count = 0;
  length_max_ = ready.length_max;
  vocab_size_ = ready.vocab_size;
  weights_bytes_ = ready.weights_bytes;
  block_count_ = ready.block_count;
  decoder_class_ = ready.decoder_class;
  signal_.change();
  return Done{};
}

Status DecoderFleet::on_tokens(std::size_t group, const Tokens& message) {
  for (const auto& begun : message.begun) {
    const auto found = streams_.find(begun.sequence);
    if (found == streams_.end() || found->second.group != group) continue;
    const auto known = found->second.request.ids.size();
    if (begun.cached_count >= known) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("the worker begins behind {} tokens of a stream that has {}",
                               begun.cached_count, known)};
    }
    events_.on_begun(begun.sequence, begun.cached_count);
  }
  if (!message.tokens.empty()) groups_[group].restarts.on_batch_served();
  for (const auto& token : message.tokens) {
    // A callback may have cancelled any of them.
    const auto found = streams_.find(token.sequence);
    if (found == streams_.end() || found->second.group != group) continue;
    auto& stream = found->second;
    stream.has_token = true;
    stream.strikes = 0;
    stream.request.ids.push_back(token.token);
    ++stream.request.reply_count;
    if (stream.request.token_limit > 0) --stream.request.token_limit;
    events_.on_token(token.sequence, token);
  }
  return Done{};
}

// True where the group had it: it has ended now.
bool DecoderFleet::take(std::size_t group, StreamId id) {
  if (groups_[group].streams.erase(id) == 0) return false;
  streams_.erase(id);
  return true;
}

// ---- Who gets which stream ----

void DecoderFleet::settle() {
  for (const auto& [group, id] : std::exchange(cancelled_, {})) {
    if (groups_[group].is_running) runner_.send(group, MessageType::Cancel, id, {});
  }
  fail_all_if_none_can_work();
  std::optional<std::size_t> reserved;  // becomes empty, for a stream that is to run alone
  for (const auto id : std::vector<StreamId>(waiting_.begin(), waiting_.end())) {
    const auto& stream = streams_.at(id);
    if (const auto group = place_for(stream, reserved)) {
      give(id, *group);
    } else if (stream.strikes > 0 && !reserved) {
      reserved = least_busy();
    } else if (stream.strikes == 0) {
      return;  // what finds no place here leaves none for those behind it
    }
  }
}

void DecoderFleet::give(StreamId id, std::size_t index) {
  auto& stream = streams_.at(id);
  auto& group = groups_[index];
  if (group.load() == 0) group.heard_at = clock_.now();
  waiting_.erase(id);
  group.streams.insert(id);
  stream.group = index;
  stream.has_token = false;
  stream.was_given = true;
  prefixes_.on_given(index, keys_of(stream), block_count_);
  runner_.send(index, MessageType::Generate, id, encode(stream.request));
}

std::optional<std::size_t> DecoderFleet::place_for(const Stream& stream,
                                                   std::optional<std::size_t> reserved) const {
  std::vector<PrefixCandidate> candidates;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& group = groups_[i];
    const auto count = group.load();
    if (group.state != State::Ready || count >= options_.streams_most || i == reserved) continue;
    if (count > 0 && (stream.strikes > 0 || has_suspect(group))) continue;
    candidates.push_back({.group = i, .load = count});
  }
  const bool is_choice = candidates.size() > 1;
  return prefixes_.choose(candidates, is_choice ? keys_of(stream) : std::vector<PrefixKey>());
}

// None where it makes no difference who gets it.
std::vector<PrefixKey> DecoderFleet::keys_of(const Stream& stream) const {
  if (!options_.has_prefix_cache || groups_.size() < 2) return {};
  return prefix_keys(stream.request.prefix_scope, stream.request.ids, StepOptions{}.block_tokens);
}

bool DecoderFleet::has_suspect(const Group& group) const {
  return std::any_of(group.streams.begin(), group.streams.end(),
                     [&](StreamId id) { return streams_.at(id).strikes > 0; });
}

std::optional<std::size_t> DecoderFleet::least_busy() const {
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].state != State::Ready) continue;
    if (!least || groups_[i].load() < groups_[*least].load()) least = i;
  }
  return least;
}

void DecoderFleet::fail_all_if_none_can_work() {
  if (waiting_.empty() || can_work()) return;
  const auto error = cannot_work_error();
  for (const auto id : std::exchange(waiting_, {})) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;  // cancelled from within what was told of another
    const bool was_given = found->second.was_given;
    streams_.erase(found);
    events_.on_failed(id, error, was_given);
  }
}

Error DecoderFleet::cannot_work_error() const {
  if (load_error_) return *load_error_;
  for (const auto& group : groups_) {
    if (!group.reason.empty()) return {ErrorKind::Unavailable, group.reason};
  }
  return {ErrorKind::Unavailable, "no worker can load the decoder"};
}

}  // namespace muster
