// Streams on their way to workers and tokens on their way back. What a worker is sent goes out at
// the end of a step, outside of all callbacks, so that these may submit and cancel as they like.

#include "coordinator/decoder_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/steps.h"

namespace muster {
namespace {

// So many workers had a stream, the last ones it alone, and died without a token of it.
constexpr std::uint32_t kStrikesMost = 3;
// So many died with it, be it with some tokens each time.
constexpr std::uint32_t kDeathsMost = 64;
// So many died with it since its last token, whoever killed them; the last ones had it alone. An
// operator or a test that kills at random does not meet one stream so often before its first token.
constexpr std::uint32_t kBarrenMost = 8;
constexpr std::uint32_t kBarrenAlone = 4;

Error not_scored() {
  return {ErrorKind::Corrupt, "the worker told other tokens of a prompt than it was asked for"};
}

}  // namespace

DecoderStreams::DecoderStreams(const DecoderFleetOptions& options, Parts parts)
    : options_(options),
      parts_(parts),
      groups_(options.devices.size()),
      prefixes_(options.devices.size()) {}

StreamId DecoderStreams::submit(StreamRequest request) {
  const StreamId id = next_id_++;
  const bool has_scores = request.scores_prompt && request.ids.size() > 1;
  const auto cost = request.ids.size() + std::min(request.token_limit, kReplyEstimate);
  const auto rank = order_.add(request.flow, cost);
  streams_.emplace(id, Stream{.request = {.ids = std::move(request.ids),
                                          .token_limit = request.token_limit,
                                          .stop_ids = std::move(request.stop_ids),
                                          .prefix_scope = request.prefix_scope,
                                          .score_from = has_scores ? 1U : 0U,
                                          .sampling = std::move(request.sampling)},
                              .flow = request.flow,
                              .cost = cost,
                              .rank = rank,
                              .group = std::nullopt,
                              .waits_since = parts_.clock.now()});
  waiting_.emplace(rank, id);
  parts_.signal.wake();
  return id;
}

bool DecoderStreams::cancel(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return false;
  const auto& stream = found->second;
  if (stream.group) {
    auto& group = groups_[*stream.group];
    group.streams.erase(id);
    group.owed.insert(id);
    cancelled_.emplace_back(*stream.group, id);
  }
  const bool was_given = stream.was_given;
  // One that was just lost may not be among these yet.
  if (waiting_.erase({stream.rank, id}) > 0) leave_order(stream);
  streams_.erase(found);
  parts_.signal.wake();
  return was_given;
}

std::optional<std::size_t> DecoderStreams::group_of(StreamId id) const {
  const auto found = streams_.find(id);
  return found == streams_.end() ? std::nullopt : found->second.group;
}

std::optional<TimePoint> DecoderStreams::waits_since(StreamId id) const {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.group) return std::nullopt;
  return found->second.waits_since;
}

void DecoderStreams::add_to_view(std::size_t index, DecoderGroupView& view) const {
  const auto& group = groups_[index];
  view.stream_count = group.streams.size();
  view.token_count = group.token_count;
  view.finished_count = group.finished_count;
  view.drafted_count = group.drafted_count;
  view.accepted_count = group.accepted_count;
}

// ---- What workers say ----

Status DecoderStreams::on_stream_frame(std::size_t group, const FrameHeader& header,
                                       std::span<const std::byte> payload) {
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Tokens:
      return on_tokens(group, MUSTER_TRY(decode_tokens(payload)));
    case MessageType::Finished:
      return on_finished(group, header.id, MUSTER_TRY(decode_finished(payload)).reason);
    case MessageType::Failed:
      on_stream_failed(group, header.id, MUSTER_TRY(decode_failed(payload)).error);
      return Done{};
    case MessageType::Cancel:
      groups_[group].owed.erase(header.id);
      return Done{};
    default:
      return Error{ErrorKind::Corrupt,
                   fmt::format("the worker sent an unknown message: type {}", header.type)};
  }
}

Status DecoderStreams::on_finished(std::size_t group, StreamId id, FinishReason reason) {
  const auto found = streams_.find(id);
  const bool is_here = found != streams_.end() && found->second.group == group;
  if (!is_here) return Done{};
  if (found->second.request.score_from > 0) return not_scored();
  const auto failed = found->second.failed_on;
  take(group, id);
  ++groups_[group].finished_count;
  parts_.events.on_finished(id, reason);
  if (failed && failed->group != group) {
    parts_.workers.end_at_fault(failed->group, failed->life);
  }
  return Done{};
}

// It may be the worker's fault or its own: once, another worker is to try, who knows what has come
// until then. What is wrong with a request, and what was refused before it began, others say too.
void DecoderStreams::on_stream_failed(std::size_t group, StreamId id, const Error& error) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.group != group) return;
  auto& stream = found->second;
  // Corrupt: its logits are no numbers, as of a damaged model or by a device that computes wrong.
  const bool is_of_worker = error.kind == ErrorKind::Internal || error.kind == ErrorKind::Corrupt;
  const bool may_try = stream.has_begun && is_of_worker && has_another(group);
  if (!may_try || std::exchange(stream.was_tried_again, true)) {
    const bool has_begun = stream.has_begun;
    take(group, id);
    return parts_.events.on_failed(id, error, has_begun);
  }
  groups_[group].streams.erase(id);
  stream.group.reset();
  stream.waits_since = parts_.clock.now();
  stream.failed_on = {.group = group, .life = parts_.workers.life(group)};
  wait_again(id, stream);
  parts_.signal.wake();
}

bool DecoderStreams::has_another(std::size_t group) const {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (i != group && parts_.workers.takes_streams(i)) return true;
  }
  return false;
}

Status DecoderStreams::on_tokens(std::size_t group, const Tokens& message) {
  for (const auto& begun : message.begun) {
    const auto found = streams_.find(begun.sequence);
    if (found == streams_.end() || found->second.group != group) continue;
    const auto known = found->second.request.ids.size();
    if (begun.cached_count >= known) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("the worker begins behind {} tokens of a stream that has {}",
                               begun.cached_count, known)};
    }
    found->second.has_begun = true;
    parts_.events.on_begun(begun.sequence, begun.cached_count);
  }
  if (!message.tokens.empty()) parts_.workers.on_served(group);
  groups_[group].drafted_count += message.drafted_count;
  groups_[group].accepted_count += message.accepted_count;
  std::vector<FailedWorker> at_fault;
  for (const auto& token : message.tokens) {
    // A callback may have cancelled any of them.
    const auto found = streams_.find(token.sequence);
    if (found == streams_.end() || found->second.group != group) continue;
    MUSTER_TRY(add_token(found->second, token));
    const auto failed = std::exchange(found->second.failed_on, std::nullopt);
    if (failed && failed->group != group) at_fault.push_back(*failed);
    if (!token.is_prompt) ++groups_[group].token_count;
    parts_.events.on_token(token.sequence, token);
  }
  // Last: it loses the streams of another worker, and whoever hears of that may cancel any.
  for (const auto& failed : at_fault) parts_.workers.end_at_fault(failed.group, failed.life);
  return Done{};
}

// What is told of the prompt goes on where another worker has ended, as the reply does.
Status DecoderStreams::add_token(Stream& stream, const GeneratedToken& token) {
  auto& request = stream.request;
  if (token.is_prompt) {
    if (request.score_from == 0 || token.token != request.ids[request.score_from] ||
        !token.logprobs) {
      return not_scored();
    }
    ++request.score_from;
    if (request.score_from == request.ids.size()) request.score_from = 0;
  } else {
    if (request.score_from > 0) return not_scored();
    if (request.token_limit == 0) {
      return Error{ErrorKind::Corrupt, "the worker told more tokens than it was asked for"};
    }
    request.ids.push_back(token.token);
    ++request.reply_count;
    --request.token_limit;
  }
  stream.has_token = true;
  stream.strikes = stream.barren_count = 0;
  return Done{};
}

// True where the group had it: it has ended now.
bool DecoderStreams::take(std::size_t group, StreamId id) {
  if (groups_[group].streams.erase(id) == 0) return false;
  streams_.erase(id);
  return true;
}

// No worker has any of them before the first callback: one that is cancelled there is owed by none.
std::size_t DecoderStreams::on_lost(std::size_t group, const DecoderLoss& loss) {
  prefixes_.forget(group);
  groups_[group].owed.clear();
  // Its successor, which may start before these are sent, has never heard of them.
  std::erase_if(cancelled_, [group](const auto& one) { return one.first == group; });
  const auto lost = std::exchange(groups_[group].streams, {});
  for (const auto id : lost) {
    auto& stream = streams_.at(id);
    stream.group.reset();
    stream.waits_since = parts_.clock.now();
  }
  for (const auto id : lost) lose(group, id, loss);
  return lost.size();
}

// It waits again. One whose last token had come, and its end not, has nothing left to ask for.
void DecoderStreams::lose(std::size_t group, StreamId id, const DecoderLoss& loss) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;  // cancelled from within what was told of another
  auto& stream = found->second;
  const auto& request = stream.request;
  const auto length_max = parts_.workers.length_max();
  const bool is_full = length_max > 0 && request.ids.size() >= length_max;
  if (request.reply_count > 0 && (request.token_limit == 0 || is_full)) {
    streams_.erase(found);
    ++groups_[group].finished_count;
    return parts_.events.on_finished(id, FinishReason::Length);
  }
  if (loss.is_own_fault && !stream.has_token) ++stream.strikes;
  if (loss.is_own_fault) ++stream.death_count;
  if (loss.is_death && !stream.has_token) ++stream.barren_count;
  const auto error = give_up_error(stream, loss);
  if (!error) return wait_again(id, stream);
  streams_.erase(found);
  parts_.events.on_failed(id, *error, true);
}

// nullopt: another worker may go on with it.
std::optional<Error> DecoderStreams::give_up_error(const Stream& stream, const DecoderLoss& loss) {
  if (stream.strikes >= kStrikesMost || stream.death_count >= kDeathsMost) {
    return Error{ErrorKind::Internal,
                 fmt::format("{} workers ended with this request, the last one by: {}",
                             stream.death_count, loss.reason)};
  }
  if (stream.barren_count < kBarrenMost) return std::nullopt;
  return Error{ErrorKind::Unavailable,
               fmt::format("{} workers were ended before they had a token of this request, the "
                           "last one by: {}",
                           stream.barren_count, loss.reason)};
}

void DecoderStreams::wait_again(StreamId id, const Stream& stream) {
  order_.add_again(stream.flow, stream.cost);
  waiting_.emplace(stream.rank, id);
}

// It waits no more and is not given to a worker. What one has computed at is charged.
void DecoderStreams::leave_order(const Stream& stream) {
  if (stream.was_given) {
    order_.on_given(stream.flow, stream.cost, stream.rank);
  } else {
    order_.on_removed(stream.flow, stream.cost, stream.rank);
  }
}

// ---- Who gets which stream ----

void DecoderStreams::settle() {
  // First: who is told of a failure may cancel others, which a draining worker still has.
  fail_all_if_none_can_work();
  for (const auto& [group, id] : std::exchange(cancelled_, {})) {
    parts_.workers.send(group, MessageType::Cancel, id, {});
  }
  watch_places(give_all());
}

// What was given while all places were taken went to places that have come free.
void DecoderStreams::watch_places(std::size_t given_count) {
  const auto now = parts_.clock.now();
  const auto free = free_count();
  if (given_count + free > 0) forecast_.on_freed(given_count + free, now);
  // While no worker is ready none has a place that could come free.
  forecast_.set_full(free == 0 && parts_.workers.is_ready(), now);
}

// How many were.
std::size_t DecoderStreams::give_all() {
  std::size_t count = 0;
  std::optional<std::size_t> reserved;  // becomes empty, for a stream that is to run alone
  for (const auto& [rank, id] : std::vector(waiting_.begin(), waiting_.end())) {
    const auto& stream = streams_.at(id);
    if (const auto group = place_for(stream, reserved)) {
      give(id, *group);
      ++count;
    } else if (is_suspect(stream) && !reserved) {
      reserved = least_busy();
    } else if (!is_suspect(stream) && !stream.failed_on) {
      break;  // what finds no place here leaves none for those behind it
    }
  }
  return count;
}

void DecoderStreams::give(StreamId id, std::size_t index) {
  auto& stream = streams_.at(id);
  auto& group = groups_[index];
  if (group.load() == 0) parts_.workers.on_first_given(index);
  waiting_.erase({stream.rank, id});
  order_.on_given(stream.flow, stream.cost, stream.rank);
  group.streams.insert(id);
  stream.group = index;
  stream.has_token = false;
  stream.was_given = true;
  prefixes_.on_given(index, keys_of(stream), parts_.workers.block_count());
  parts_.workers.send(index, MessageType::Generate, id, encode(stream.request));
}

std::optional<std::size_t> DecoderStreams::place_for(const Stream& stream,
                                                     std::optional<std::size_t> reserved) const {
  const auto& failed = stream.failed_on;
  const auto excluded =
      failed && has_another(failed->group) ? std::optional(failed->group) : std::nullopt;
  std::vector<PrefixCandidate> candidates;
  const auto most = places_of_each();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& group = groups_[i];
    const auto count = group.load();
    const bool is_full = count >= most;
    if (!parts_.workers.takes_streams(i) || is_full || i == reserved || i == excluded) continue;
    if (count > 0 && (is_suspect(stream) || has_suspect(group))) continue;
    candidates.push_back({.group = i, .load = count});
  }
  const auto is_late = [this](const PrefixCandidate& one) {
    return parts_.workers.is_late(one.group);
  };
  if (!std::all_of(candidates.begin(), candidates.end(), is_late)) {
    std::erase_if(candidates, is_late);
  }
  const bool is_choice = candidates.size() > 1;
  return prefixes_.choose(candidates, is_choice ? keys_of(stream) : std::vector<PrefixKey>());
}

// Of the streams there are, where they are spread, else as many as a worker may have.
std::size_t DecoderStreams::places_of_each() const {
  const std::size_t most = options_.streams_most;
  const auto workers = parts_.workers.working_count();
  if (!options_.spreads_streams || workers == 0) return most;
  return std::min(most, (streams_.size() + workers - 1) / workers);
}

// What is cancelled gives its place back within a step.
std::size_t DecoderStreams::free_count() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!parts_.workers.takes_streams(i) || has_suspect(groups_[i])) continue;
    const std::size_t most = options_.streams_most;
    count += most - std::min(most, groups_[i].streams.size());
  }
  return count;
}

// Where no worker is ready the wait is for one of them to come back, and nobody knows when.
std::optional<Duration> DecoderStreams::wait_for_places(std::size_t count) const {
  if (!parts_.workers.is_ready()) return std::nullopt;
  return forecast_.wait(count, parts_.clock.now());
}

// None where it makes no difference who gets it.
std::vector<PrefixKey> DecoderStreams::keys_of(const Stream& stream) const {
  if (!options_.has_prefix_cache || groups_.size() < 2) return {};
  return prefix_keys(stream.request.prefix_scope, stream.request.ids, StepOptions{}.block_tokens);
}

bool DecoderStreams::is_suspect(const Stream& stream) {
  return stream.strikes > 0 || stream.barren_count >= kBarrenAlone;
}

bool DecoderStreams::has_suspect(const Group& group) const {
  return std::any_of(group.streams.begin(), group.streams.end(),
                     [&](StreamId id) { return is_suspect(streams_.at(id)); });
}

std::optional<std::size_t> DecoderStreams::least_busy() const {
  std::optional<std::size_t> least;
  const auto reluctance = [this](std::size_t group) {
    return std::pair(parts_.workers.is_late(group), groups_[group].load());
  };
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!parts_.workers.takes_streams(i)) continue;
    if (!least || reluctance(i) < reluctance(*least)) least = i;
  }
  return least;
}

void DecoderStreams::fail_all_if_none_can_work() {
  if (waiting_.empty() || parts_.workers.can_work()) return;
  const auto error = parts_.workers.cannot_work_error();
  const auto all = std::exchange(waiting_, {});
  // From the last one, as the order wants it, and all of them before the first callback.
  for (auto one = all.rbegin(); one != all.rend(); ++one) leave_order(streams_.at(one->second));
  for (const auto& [rank, id] : all) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;  // cancelled from within what was told of another
    const bool was_given = found->second.was_given;
    streams_.erase(found);
    parts_.events.on_failed(id, error, was_given);
  }
}

}  // namespace muster
