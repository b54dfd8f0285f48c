// Discrete events around the owners of streams and workers: who asks, what workers say, and when.

#include "simulator/simulated_decoders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "scheduler/reply_admission.h"
#include "simulator/random.h"

namespace muster {
namespace {

constexpr std::uint32_t kVocab = 49'152;
constexpr const char* kBuild = "simulated";
constexpr std::size_t kViolationsMost = 10;  // the rest follows from them
constexpr std::array<std::string_view, 4> kCallers = {"", "a", "b", "c"};

// As DecoderStreams charges a flow (coordinator/decoder_streams.h).
std::uint64_t cost_of(const SimulatedReply& reply) {
  return reply.ids.size() + std::min(reply.token_limit, kReplyEstimate);
}

std::uint64_t cost_most(const StepWorld& world) {
  std::uint64_t most = 0;
  for (const auto& reply : world.replies) most = std::max(most, cost_of(reply));
  return most;
}

// Each step computes a token at least. What was preempted is computed again, in chunks: a world
// that takes four times as many goes in circles.
std::uint64_t steps_most(const StepWorld& world) {
  std::uint64_t tokens = 1000;
  for (const auto& reply : world.replies) tokens += reply.ids.size() + reply.token_limit;
  return 4 * tokens;
}

bool ends_by_itself(const SimulatedReply& reply) { return reply.token_count < reply.token_limit; }

}  // namespace

StepWorldResult simulate_steps(const StepWorld& world) { return SimulatedDecoders(world).run(); }

SimulatedDecoders::SimulatedDecoders(const StepWorld& world)
    : world_(world),
      speech_(speech()),
      options_(options_of(world)),
      events_(events()),
      workers_(options_, {.processes = *this,
                          .client = *this,
                          .signal = signal_,
                          .clock = clock_,
                          .on_notice = [](const std::string&, std::size_t) {}}),
      streams_(options_,
               {.workers = workers_, .events = events_, .signal = signal_, .clock = clock_}),
      replies_(world.replies.size()),
      turns_(cost_most(world), [this](const std::string& what) { violated(what); }),
      steps_left_(steps_most(world)) {
  signal_.begin_step();  // for good: nobody waits to be woken
  simulated_.reserve(world.worker_count);
  for (std::size_t group = 0; group < world.worker_count; ++group) {
    const auto tell_of = [this, group](const std::string& what) {
      violated(fmt::format("worker {}: {}", group, what));
    };
    simulated_.push_back({.worker = SimulatedDecoderWorker(world, speech_, tell_of)});
  }
}

DecoderFleetOptions SimulatedDecoders::options_of(const StepWorld& world) {
  DecoderFleetOptions options;
  options.devices.resize(world.worker_count);
  options.build = kBuild;
  options.streams_most = world.steps.sequences_most;
  options.has_prefix_cache = world.steps.keeps_prefixes;
  options.step_tokens_most = world.steps.step_tokens_most;
  return options;
}

SimulatedSpeech SimulatedDecoders::speech() const {
  SimulatedSpeech said;
  said.choose = [this](SequenceId id, std::size_t position) { return token_at(id, position); };
  said.choice_count = [this](SequenceId id) {
    const auto& asked = world_.replies[reply_of_.at(id)];
    return asked.token_count + (ends_by_itself(asked) ? 1U : 0U);
  };
  return said;
}

DecoderFleetEvents SimulatedDecoders::events() {
  DecoderFleetEvents told;
  told.on_begun = [](StreamId, std::uint32_t) {};
  told.on_token = [this](StreamId stream, const GeneratedToken& token) { on_token(stream, token); };
  told.on_finished = [this](StreamId stream, FinishReason reason) { on_finished(stream, reason); };
  told.on_failed = [this](StreamId stream, const Error& error, bool) {
    violated(fmt::format("stream {} failed: {}", stream, error.message));
  };
  return told;
}

StepWorldResult SimulatedDecoders::run() {
  load_workers();
  if (!world_.replies.empty()) at(world_.replies.front().at, EventKind::Arrival, 0);
  while (!events_to_come_.empty() && steps_left_ > 0) {
    const auto event = events_to_come_.top();
    events_to_come_.pop();
    clock_.at = event.at;
    handle(event);
    settle();
  }
  check_end();
  return std::move(result_);
}

void SimulatedDecoders::load_workers() {
  MUSTER_CHECK(workers_.start());
  const auto& steps = world_.steps;
  for (std::size_t group = 0; group < simulated_.size(); ++group) {
    tell(group, MessageType::Hello, 0,
         encode(Hello{.protocol = Hello::kProtocol, .build = kBuild, .engine_class = ""}));
    tell(group, MessageType::DecoderReady, 0,
         encode(DecoderReady{.vocab_size = kVocab,
                             .length_max = steps.length_max,
                             .block_count = steps.block_count,
                             .thread_count = 1,
                             .block_bytes = 1,
                             .weights_bytes = 1,
                             .decoder_class = kBuild}));
  }
}

// What a worker says, to the code that hears real ones.
void SimulatedDecoders::tell(std::size_t group, MessageType type, std::uint64_t id,
                             const std::vector<std::byte>& payload) {
  const FrameHeader header{.type = static_cast<std::uint8_t>(type),
                           .id = id,
                           .payload_size = static_cast<std::uint32_t>(payload.size())};
  const auto heard = workers_.on_frame(group, 0, header, payload);
  if (!heard) violated(fmt::format("worker {} is not believed: {}", group, heard.error().message));
}

void SimulatedDecoders::at(TimePoint time, EventKind kind, std::size_t subject) {
  events_to_come_.push({.at = time, .order = next_order_++, .kind = kind, .subject = subject});
}

void SimulatedDecoders::violated(const std::string& what) {
  if (result_.violations.size() >= kViolationsMost) return;
  result_.violations.push_back(
      fmt::format("at {:.6f} s: {}", seconds(clock_.at - TimePoint{}), what));
}

void SimulatedDecoders::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::Arrival:
      return on_arrival(event.subject);
    case EventKind::Leaving:
      return on_leaving(event.subject);
    case EventKind::StepDone:
      return on_step_done(event.subject);
  }
}

// ---- Clients ----

// Each arrival puts the next one into the queue, so that the queue holds one of them at a time.
void SimulatedDecoders::on_arrival(std::size_t index) {
  const auto& asked = world_.replies[index];
  if (index + 1 < replies_.size()) {
    at(world_.replies[index + 1].at, EventKind::Arrival, index + 1);
  }
  auto& reply = replies_[index];
  if (!is_let_in(index)) {
    reply.fate = Fate::Refused;
    ++result_.refused_count;
    return;
  }
  reply.fate = Fate::Open;
  reply.stream = streams_.submit({.ids = asked.ids,
                                  .token_limit = asked.token_limit,
                                  .prefix_scope = asked.caller,
                                  .flow = asked.caller});
  reply_of_[reply.stream] = index;
  turns_.on_submitted(reply.stream, asked.caller, cost_of(asked));
  if (turns_.waiting_count() > ReplyQueue{}.waiting_most + streams_.free_count()) {
    violated(fmt::format("{} replies wait, with {} places", turns_.waiting_count(),
                         streams_.free_count()));
  }
  if (asked.leaves) at(std::max(*asked.leaves, clock_.at), EventKind::Leaving, index);
}

// As GenerationService asks.
bool SimulatedDecoders::is_let_in(std::size_t index) const {
  const auto caller = world_.replies[index].caller;
  MUSTER_CHECK(caller < kCallers.size());
  ReplyQueue queue{.free_count = streams_.free_count()};
  for (const auto& [flow, count] : turns_.waiting_by_flow()) queue.waiting[kCallers[flow]] = count;
  const auto answer = ask_for_places(queue, kCallers[caller], 1);
  if (answer.verdict != ReplyAnswer::Verdict::LetIn) return false;
  if (answer.place_count == 0) return true;
  const auto wait = streams_.wait_for_places(answer.place_count);
  return !wait || *wait <= world_.queue_budget;
}

void SimulatedDecoders::on_leaving(std::size_t index) {
  auto& reply = replies_[index];
  if (reply.fate != Fate::Open) return;
  reply.fate = Fate::Cancelled;
  ++result_.cancelled_count;
  turns_.on_cancelled(reply.stream);
  (void)streams_.cancel(reply.stream);
}

// The same for whoever asks: by the reply and the position alone, as a sampler's is.
std::optional<std::uint32_t> SimulatedDecoders::token_at(StreamId stream,
                                                         std::size_t position) const {
  const auto index = reply_of_.at(stream);
  const auto& asked = world_.replies[index];
  const bool is_over = position >= asked.ids.size() + asked.token_count;
  if (is_over) return std::nullopt;
  SimulatedChance chance((std::uint64_t{index} << 32) + position);
  return static_cast<std::uint32_t>(chance.below(kVocab));
}

void SimulatedDecoders::on_token(StreamId stream, const GeneratedToken& token) {
  const auto index = reply_of_.at(stream);
  const auto& asked = world_.replies[index];
  auto& reply = replies_[index];
  if (reply.fate != Fate::Open ||
      token.token != token_at(stream, asked.ids.size() + reply.token_count)) {
    return violated(fmt::format("reply {} has a wrong token behind {} of {}", index,
                                reply.token_count, asked.token_count));
  }
  reply.last_at = clock_.at;
  if (reply.token_count++ > 0) return;
  reply.first_at = clock_.at;
  result_.first_token_seconds.push_back(seconds(clock_.at - asked.at));
}

void SimulatedDecoders::on_finished(StreamId stream, FinishReason reason) {
  const auto index = reply_of_.at(stream);
  const auto& asked = world_.replies[index];
  auto& reply = replies_[index];
  const auto expected = ends_by_itself(asked) ? FinishReason::Stop : FinishReason::Length;
  if (reply.fate != Fate::Open || reply.token_count != asked.token_count || reason != expected) {
    violated(fmt::format("reply {} ends by {} with {} of {} tokens", index,
                         finish_reason_name(reason), reply.token_count, asked.token_count));
  }
  reply.fate = Fate::Ended;
  result_.end_seconds.push_back(seconds(clock_.at - asked.at));
  if (reply.token_count < 2) return;
  result_.token_seconds.push_back(seconds(reply.last_at - reply.first_at) /
                                  (reply.token_count - 1));
}

// ---- Workers ----

// What was cancelled is answered for by a Cancel, also where its end came first.
void SimulatedDecoders::on_step_done(std::size_t group) {
  --steps_left_;
  if (steps_left_ == 0) violated("it does not end");
  auto& worker = simulated_[group];
  const auto outcome = worker.worker.end_step();
  for (const auto& [id, reason] : outcome.finished) {
    if (replies_[reply_of_.at(id)].fate != Fate::Cancelled) worker.open.erase(id);
  }
  tell(group, MessageType::Tokens, 0, encode(outcome.told));
  for (const auto& [id, reason] : outcome.finished) {
    tell(group, MessageType::Finished, id, encode(Finished{.reason = reason}));
  }
}

// A place that comes free is given away at once.
void SimulatedDecoders::settle() {
  do {
    streams_.settle();
  } while (read_inboxes());
  if (streams_.waiting_count() == 0) turns_.on_none_waits();
  check_places();
  begin_steps();
}

// True where a place came free.
bool SimulatedDecoders::read_inboxes() {
  bool is_one_free = false;
  for (std::size_t group = 0; group < simulated_.size(); ++group) {
    auto& worker = simulated_[group];
    if (worker.worker.is_in_step()) continue;
    for (const auto& sent : std::exchange(worker.inbox, {})) {
      if (sent.type == MessageType::Generate) {
        auto request = decode_generate(sent.payload);
        MUSTER_CHECK(request);
        worker.worker.add(sent.id, *std::move(request));
        continue;
      }
      worker.worker.remove(sent.id);
      worker.open.erase(sent.id);
      tell(group, MessageType::Cancel, sent.id, {});
      is_one_free = true;
    }
  }
  return is_one_free;
}

void SimulatedDecoders::check_places() {
  const auto places = world_.steps.sequences_most;
  for (std::size_t group = 0; group < simulated_.size(); ++group) {
    const auto count = simulated_[group].open.size();
    if (count > places) {
      violated(fmt::format("worker {} has {} streams and {} places", group, count, places));
    }
    if (count >= places || streams_.waiting_count() == 0) continue;
    violated(fmt::format("{} streams wait, and worker {} has {} in {} places",
                         streams_.waiting_count(), group, count, places));
  }
}

void SimulatedDecoders::begin_steps() {
  for (std::size_t group = 0; group < simulated_.size(); ++group) {
    auto& worker = simulated_[group].worker;
    if (worker.is_in_step() || worker.is_idle()) continue;
    if (const auto time = worker.begin_step()) at(clock_.at + *time, EventKind::StepDone, group);
  }
}

void SimulatedDecoders::check_end() {
  result_.span_seconds = seconds(clock_.at - TimePoint{});
  for (std::size_t index = 0; index < replies_.size(); ++index) {
    const auto fate = replies_[index].fate;
    if (fate != Fate::Open && fate != Fate::Coming) continue;
    violated(fmt::format("reply {} was lost behind {} of {} tokens", index,
                         replies_[index].token_count, world_.replies[index].token_count));
  }
  for (auto& worker : simulated_) worker.worker.end(result_);
}

// ---- What is asked of processes ----

Result<std::vector<pid_t>> SimulatedDecoders::start(std::size_t group,
                                                    const std::vector<Device>& /*devices*/) {
  return std::vector<pid_t>{static_cast<pid_t>(group + 1)};
}

void SimulatedDecoders::send(std::size_t group, MessageType type, std::uint64_t id,
                             std::vector<std::byte> payload) {
  if (type != MessageType::Generate && type != MessageType::Cancel) return;
  auto& worker = simulated_[group];
  if (type == MessageType::Generate) {
    worker.open.insert(id);
    turns_.on_given(id);
  }
  worker.inbox.push_back({.type = type, .id = id, .payload = std::move(payload)});
}

void SimulatedDecoders::end(std::size_t group, GroupEnding /*how*/) {
  violated(fmt::format("worker {} is ended", group));
}

std::optional<WorkerDeath> SimulatedDecoders::reap(std::size_t /*group*/, Duration /*limit*/) {
  return std::nullopt;
}

std::string SimulatedDecoders::last_output(
    std::size_t /*group*/, const std::function<void(const std::string&)>& /*on_line*/) {
  return {};
}

void SimulatedDecoders::leave(std::size_t /*group*/) {}

}  // namespace muster
