// Decoders on their way in and out. Files are read on threads beside the loop; what follows is on
// it. A fleet is never destroyed within its own step: whatever makes it go is posted.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "jobs/decoder_cache.h"
#include "jobs/decoder_source.h"
#include "serving/serving_decoders.h"

namespace muster {
namespace {

// A worker is asked for a known reply before it has others (coordinator/decoder_canary.h).
constexpr std::uint32_t kLengthLeast = 32;

}  // namespace

// Threads: any. It reads what never changes.
Result<ServingDecoders::Opened> ServingDecoders::read(const ServedModel& asked) const {
  Opened opened;
  opened.decoder = MUSTER_TRY(read_decoder(asked, options_.devices));
  auto& decoder = *opened.decoder;
  if (decoder.is_precision_auto) {
    auto known = known_decoder_precision(question_of(decoder.path, widest(decoder.devices)));
    if (!known) return opened;
    decoder.take_precision(*std::move(known));
  }
  opened.need = need_of(decoder.path, decoder.precision, decoder.length_most, place_of(decoder));
  return opened;
}

// Threads: any.
ServingDecoders::Need ServingDecoders::need_of(const std::string& path, DecoderPrecision precision,
                                               std::uint32_t length_most,
                                               const DecoderPlace& place) const {
  Need need;
  if (const auto demand =
          decoder_demand(path, precision, length_most, place, options_.replies_at_once)) {
    need.demand = *demand;
  } else {
    need.why_unknown = demand.error().message;
  }
  if (events_.memory_available) need.available = events_.memory_available();
  return need;
}
// Errors: ResourceExhausted where too many wait.
Status ServingDecoders::do_beside(Beside& beside, std::function<void()> job) {
  if (!beside.thread.joinable()) {
    beside.thread = std::jthread([this, &beside] {
      while (const auto next = beside.jobs.take()) {
        if (!is_ending_) (*next)();
      }
    });
  }
  if (beside.jobs.push(std::move(job))) return Done{};
  return Error{ErrorKind::ResourceExhausted,
               fmt::format("too many models wait to be opened: {}", kFilesMost)};
}

void ServingDecoders::ask_kind(const std::string& model,
                               std::function<void(Result<bool>)> on_answer) {
  // Shared: where there is no room for the question, the answer is given here.
  auto answer = std::make_shared<std::function<void(Result<bool>)>>(std::move(on_answer));
  const auto asked = do_beside(quick_, [this, model, answer]() mutable {
    const bool generates = names_decoder(model);
    // Given away: what an answer holds, a request of a client, must not end on this thread.
    loop_.post([answer = std::move(answer), generates] { (*answer)(generates); });
  });
  if (!asked) (*answer)(asked.error());
}

// The timer is due once the loop runs, and so behind what may be wrong with the rest of the start:
// nothing is measured for a server whose port is taken.
Status ServingDecoders::open(const ServedModel& asked) {
  auto ticket = MUSTER_TRY(roster_.enter());
  auto opened = MUSTER_TRY(read(asked));
  const auto name = opened.decoder->name;
  if (!ticket.take_name(name)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("two models have the same name: {}; NAME=MODEL gives another", name)};
  }
  const auto id = next_id_++;
  if (!opened.decoder->is_precision_auto) {
    auto* const decoder = MUSTER_TRY(place(opened, id, /*is_at_start=*/true));
    decoder->ticket = std::move(ticket);
    return Done{};
  }
  openings_.emplace(id, Opening{.name = name,
                                .ticket = std::move(ticket),
                                .is_at_start = true,
                                .read = std::move(opened.decoder)});
  measure_timer_->set(clock_.now());
  return Done{};
}

void ServingDecoders::load(const ServedModel& asked, OnLoaded on_done) {
  if (!takes_loads_) return on_done(server_ends_error());
  auto ticket = roster_.enter();
  if (!ticket) return on_done(ticket.error());
  if (!asked.name.empty()) {
    if (const auto named = ticket->take_name(asked.name); !named) return on_done(named.error());
  }
  const auto id = next_id_++;
  Opening opening{.name = asked.name, .ticket = *std::move(ticket), .on_done = std::move(on_done)};
  const auto is_unwanted = opening.is_unwanted;
  openings_.emplace(id, std::move(opening));
  const auto taken = do_beside(quick_, [this, id, asked, is_unwanted] {
    if (is_unwanted->load()) return;
    const auto opened = std::make_shared<Result<Opened>>(read(asked));
    loop_.post([this, id, opened] { on_read(id, std::move(*opened)); });
  });
  if (!taken) fail_opening(id, taken.error());
}

// From here on it has its name, whatever it waits for. Where another model has that, nothing is
// measured for this one.
void ServingDecoders::on_read(std::uint64_t id, Result<Opened> opened) {
  const auto found = openings_.find(id);
  if (found == openings_.end()) return;  // it was unloaded meanwhile
  if (!opened) return fail_opening(id, opened.error());
  auto& opening = found->second;
  const auto& name = opened->decoder->name;
  if (const auto named = opening.ticket.take_name(name); !named) {
    return fail_opening(id, named.error());
  }
  opening.name = name;
  if (!opened->decoder->is_precision_auto) return place_opening(id, *std::move(opened));
  opening.read = std::move(opened->decoder);
  measure_next();
}

void ServingDecoders::place_opening(std::uint64_t id, Opened opened) {
  auto& opening = openings_.at(id);
  const auto placed = place(opened, id, opening.is_at_start);
  if (!placed) {
    opening.read = std::move(opened.decoder);
    return fail_opening(id, placed.error());
  }
  auto& decoder = **placed;
  decoder.ticket = std::move(opening.ticket);
  decoder.on_loaded = std::move(opening.on_done);
  openings_.erase(id);
  tell_state(decoder);  // every device of it may be drained
}

// One of the start stays, with its state, as one that no device can load.
void ServingDecoders::fail_opening(std::uint64_t id, const Error& error) {
  const auto found = openings_.find(id);
  if (found == openings_.end()) return;
  if (found->second.is_at_start) {
    found->second.failure = error;
    return events_.on_notice(
        fmt::format("model {}: not loaded: {}", found->second.name, error.message), std::nullopt);
  }
  const auto opening = std::move(found->second);
  openings_.erase(found);
  opening.on_done(error);
}

// On an error the decoder stays in `opened`.
Result<ServingDecoder*> ServingDecoders::place(Opened& opened, std::uint64_t id, bool is_at_start) {
  auto& decoder = *opened.decoder;
  const auto asked_length = decoder.length_most;
  const auto fitted = fit_memory(opened);
  if (!fitted) {
    decoder.length_most = asked_length;  // it may be tried again
    return fitted.error();
  }
  const auto cache_bytes = *fitted;
  if (decoder.length_most < asked_length) {
    events_.on_notice(
        fmt::format("{}: a prompt and its reply may have {} tokens instead of {}, as there are {} "
                    "for keys and values on each device",
                    decoder.name, decoder.length_most, asked_length, human_bytes(cache_bytes)),
        std::nullopt);
  }
  if (!opened.need.demand) {
    events_.on_notice(fmt::format("{}: loaded without a look at memory, since what it takes is not "
                                  "known: {}",
                                  decoder.name, opened.need.why_unknown),
                      std::nullopt);
  }
  decoder.id = id;
  MUSTER_TRY(start_fleet(decoder, cache_bytes, is_at_start));
  const auto behind =
      std::upper_bound(decoders_.begin(), decoders_.end(), id,
                       [](std::uint64_t one, const auto& other) { return one < other->id; });
  auto* const placed = decoders_.insert(behind, std::move(opened.decoder))->get();
  if (measurement_) look_at_loads();  // it loads from now on, maybe where one is measured
  return placed;
}

// Bytes for keys and values of each worker. Notes in the decoder what a worker takes in all.
//
// Errors: ResourceExhausted where a device has too little for a worker.
Result<std::uint64_t> ServingDecoders::fit_memory(const Opened& opened) const {
  auto& decoder = *opened.decoder;
  std::optional<std::uint64_t> least;
  std::size_t tightest = 0;
  for (const auto device : decoder.devices) {
    std::uint64_t planned = 0;
    for (const auto& other : decoders_) {
      const auto& places = other->devices;
      const bool is_there = std::find(places.begin(), places.end(), device) != places.end();
      if (is_there) planned += other->planned_bytes;
    }
    const auto room = memory_.room(device, planned, opened.need.available);
    if (!room || (least && *room >= *least)) continue;
    least = room;
    tightest = device;
  }
  const auto demand = opened.need.demand.value_or(DecoderDemand{});
  const auto kept = kept_as(decoder.asked.kv_cache_dtype, decoder.precision);
  const WorkerMemory memory{.free_bytes = least.value_or(0), .other_bytes = demand.total()};
  auto cache = options_.kv_cache_bytes
                   ? cache_of(decoder.spec, kept, decoder.length_most, *options_.kv_cache_bytes)
                   : fit_cache(decoder.spec, kept, decoder.length_most, memory);
  if (cache.length_most < std::min(decoder.length_most, kLengthLeast)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("kv_cache_size {}: {} needs {} for {} tokens, the fewest that it can "
                             "serve with",
                             human_bytes(*options_.kv_cache_bytes), decoder.name,
                             human_bytes(kLengthLeast * token_cache_bytes(decoder.spec, kept)),
                             kLengthLeast)};
  }
  cache.bytes =
      std::min(cache.bytes, cache_bytes_most(decoder.spec, kept, options_.replies_at_once));
  decoder.length_most = cache.length_most;
  if (!opened.need.demand) return cache.bytes;
  decoder.planned_bytes = demand.with_cache(cache.bytes);
  if (!least || decoder.planned_bytes <= *least) return cache.bytes;
  return Error{
      ErrorKind::ResourceExhausted,
      fmt::format("{} needs {} on each device (weights {}, a step {}, keys and values {}), and {} "
                  "has {} left: unload another model or name {}",
                  decoder.name, human_bytes(decoder.planned_bytes),
                  human_bytes(demand.weights_bytes), human_bytes(demand.step_bytes()),
                  human_bytes(cache.bytes), options_.devices[tightest].name(), human_bytes(*least),
                  options_.kv_cache_bytes ? "less for keys and values (kv_cache_size)"
                                          : "fewer tokens (length_max)")};
}

Status ServingDecoders::start_fleet(ServingDecoder& decoder, std::uint64_t cache_bytes,
                                    bool is_at_start) {
  DecoderFleetOptions options{.devices = {},
                              .worker_program = options_.worker_program,
                              .torch_root = options_.torch_root,
                              .build = std::string(build_name()),
                              .source = decoder.path,
                              .precision = decoder.precision,
                              .kv_cache_dtype = decoder.asked.kv_cache_dtype,
                              .cache_bytes = cache_bytes,
                              .streams_most = options_.replies_at_once,
                              .has_prefix_cache = options_.has_prefix_cache,
                              .drafted_tokens_most = options_.drafted_tokens_most,
                              .asks_canary = true,
                              .ends_with_other_build = is_at_start,
                              .drain_limit = drain_limit_,
                              .waits_for_memory = true};
  for (const auto device : decoder.devices) {
    if (resting_.contains(device)) options.resting.push_back(options.devices.size());
    options.devices.push_back(options_.devices[device]);
  }
  DecoderFleetEvents events;
  events.on_begun = [this, &decoder](StreamId stream, std::uint32_t cached_count) {
    events_.on_begun(decoder, stream, cached_count);
  };
  events.on_token = [this, &decoder](StreamId stream, const GeneratedToken& token) {
    events_.on_token(decoder, stream, token);
  };
  events.on_finished = [this, &decoder](StreamId stream, FinishReason reason) {
    events_.on_finished(decoder, stream, reason);
  };
  events.on_failed = [this, &decoder](StreamId stream, const Error& error, bool was_given) {
    events_.on_failed(decoder, stream, error, was_given);
  };
  events.on_change = [this, &decoder] { tell_state(decoder); };
  events.on_notice = [this, &decoder](const std::string& text, std::size_t group) {
    events_.on_notice(fmt::format("{}: {}", decoder.name, text),
                      options_.devices[decoder.devices[group]].name());
  };
  decoder.fleet = MUSTER_TRY(DecoderFleet::start(std::move(options), std::move(events), clock_));
  decoder.timer = loop_.timer([this, &decoder] { pump(decoder); });
  decoder.watch = loop_.watch(decoder.fleet->wait_fd(), [this, &decoder] { pump(decoder); });
  decoder.timer->set(decoder.fleet->next_deadline());
  return Done{};
}

Result<std::size_t> ServingDecoders::unload(const std::string& name) {
  const Error meanwhile{ErrorKind::Cancelled,
                        "the model was unloaded while it was loading: " + name};
  for (const auto& decoder : decoders_) {
    if (decoder->is_leaving || decoder->name != name) continue;
    const auto count = events_.reply_count(*decoder);
    leave(*decoder, meanwhile);
    return count;
  }
  for (auto opening = openings_.begin(); opening != openings_.end(); ++opening) {
    if (name.empty() || opening->second.name != name) continue;
    const auto on_done = std::move(opening->second.on_done);
    tell_unwanted(opening->first, opening->second);
    openings_.erase(opening);
    if (on_done) on_done(meanwhile);
    return std::size_t{0};
  }
  return no_such_model(name);
}

// Others wait for the threads that read and measure.
void ServingDecoders::tell_unwanted(std::uint64_t id, const Opening& opening) {
  *opening.is_unwanted = true;
  if (measurement_ && measurement_->opening == id) *measurement_->trial.is_unwanted = true;
}

// An answer that is owed keeps a server from its end until the drain limit.
void ServingDecoders::end_loads() {
  takes_loads_ = false;
  std::vector<std::uint64_t> ending;
  for (const auto& [id, opening] : openings_) {
    if (opening.is_at_start) continue;
    tell_unwanted(id, opening);
    ending.push_back(id);
  }
  for (const auto id : ending) fail_opening(id, server_ends_error());
}

void ServingDecoders::leave(ServingDecoder& decoder, const Error& why_not_loaded) {
  decoder.is_leaving = true;
  decoder.ticket.leave();
  decoder.leave_timer = loop_.timer([this, &decoder] {
    events_.fail_calls(decoder,
                       {ErrorKind::Unavailable,
                        fmt::format("{} was unloaded before the end of the reply", decoder.name)});
  });
  decoder.leave_timer->set(clock_.now() + drain_limit_);
  loop_.post([this, id = decoder.id] { let_go(id); });
  if (decoder.on_loaded) std::exchange(decoder.on_loaded, nullptr)(why_not_loaded);
}

void ServingDecoders::on_call_end(const ServingDecoder& decoder) {
  if (decoder.is_leaving) loop_.post([this, id = decoder.id] { let_go(id); });
}

// Its workers end once nothing is computed with it any more; `pump` sees when they are gone.
void ServingDecoders::let_go(std::uint64_t id) {
  auto* const decoder = find_id(id);
  if (decoder == nullptr || events_.reply_count(*decoder) > 0) return;
  decoder->leave_timer->clear();
  decoder->fleet->workers().stop();
}

void ServingDecoders::remove(std::uint64_t id) {
  const auto found = std::find_if(decoders_.begin(), decoders_.end(),
                                  [id](const auto& decoder) { return decoder->id == id; });
  if (found == decoders_.end()) return;
  const auto decoder = std::move(*found);
  decoders_.erase(found);
  events_.on_notice(fmt::format("model {}: unloaded, its workers have ended", decoder->name),
                    std::nullopt);
}

}  // namespace muster
