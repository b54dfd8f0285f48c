// Decoders on their way in and out. Files are read on threads beside the loop; what follows is on
// it. A fleet is never destroyed within its own step: whatever makes it go is posted.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "jobs/decoder_cache.h"
#include "jobs/decoder_precision.h"
#include "jobs/decoder_probe.h"
#include "jobs/decoder_source.h"
#include "serving/serving_decoders.h"

namespace muster {
namespace {

// Its devices are of one kind (serving_decoder.cpp): that with the most threads stands for all.
DecoderPlace place_of(const ServingDecoder& decoder, const std::vector<Device>& devices) {
  auto place = DecoderPlace::of(devices[decoder.devices.front()]);
  for (const auto index : decoder.devices) {
    place.threads = std::max(place.threads, DecoderPlace::of(devices[index]).threads);
  }
  return place;
}

}  // namespace

// Threads: any. It reads what never changes.
Result<ServingDecoders::Opened> ServingDecoders::settle(std::unique_ptr<ServingDecoder> read,
                                                        const Watch& watch) const {
  Opened opened;
  opened.decoder = std::move(read);
  if (opened.decoder->is_precision_auto) MUSTER_TRY(settle_precision(*opened.decoder, watch));
  const auto& decoder = *opened.decoder;
  const auto where = place_of(decoder, options_.devices);
  if (const auto demand =
          decoder_demand(decoder.path, decoder.precision, decoder.length_most, where)) {
    opened.demand = *demand;
  } else {
    opened.why_no_demand = demand.error().message;
  }
  if (events_.memory_available) opened.available = events_.memory_available();
  return opened;
}

// By a worker beside those that there are, which may keep the device busy meanwhile. Of those that
// are being loaded the free memory may not tell yet; where it becomes too little, the measurement
// fails and says so.
//
// Errors: Cancelled. Threads: any.
Status ServingDecoders::settle_precision(ServingDecoder& decoder, const Watch& watch) const {
  auto widest = decoder.devices.front();
  for (const auto index : decoder.devices) {
    if (options_.devices[index].cpus.size() > options_.devices[widest].cpus.size()) widest = index;
  }
  const auto available = events_.memory_available ? events_.memory_available() : std::nullopt;
  const DecoderPrecisionQuestion question{.source = decoder.path,
                                          .device = options_.devices[widest],
                                          .memory_bytes = memory_.room(widest, 0, available),
                                          .build = std::string(build_name()),
                                          .cache_folder = options_.cache_folder};
  const DecoderProbeOptions probing{.device = question.device,
                                    .worker_program = options_.worker_program,
                                    .torch_root = options_.torch_root,
                                    .build = question.build};
  auto choice = MUSTER_TRY(settle_decoder_precision(
      question,
      [&](const ProbeDecoder& probe) {
        return probe_decoder(probing, probe, clock_, watch.is_cancelled);
      },
      [&](const std::string& text) {
        watch.on_notice(fmt::format("{}: {}", decoder.name, text));
      }));
  decoder.precision = choice.precision;
  decoder.precision_reason = std::move(choice.reason);
  return Done{};
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

Status ServingDecoders::open(const ServedModel& asked) {
  auto ticket = MUSTER_TRY(roster_.enter());
  auto read = MUSTER_TRY(read_decoder(asked, options_.devices));
  if (!ticket.take_name(read->name)) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("two models have the same name: {}; NAME=MODEL gives another", read->name)};
  }
  const Watch watch{
      .on_notice = [this](const std::string& text) { events_.on_notice(text, std::nullopt); },
      .is_cancelled = [this] { return events_.is_cancelled && events_.is_cancelled(); }};
  auto opened = MUSTER_TRY(settle(std::move(read), watch));
  MUSTER_TRY(place(std::move(opened), std::move(ticket), /*is_at_start=*/true));
  return Done{};
}

void ServingDecoders::load(const ServedModel& asked, OnLoaded on_done) {
  auto ticket = roster_.enter();
  if (!ticket) return on_done(ticket.error());
  if (!asked.name.empty()) {
    if (const auto named = ticket->take_name(asked.name); !named) return on_done(named.error());
  }
  const auto id = next_id_++;
  Opening opening{.name = asked.name, .ticket = *std::move(ticket), .on_done = std::move(on_done)};
  const auto is_unwanted = opening.is_unwanted;
  openings_.emplace(id, std::move(opening));
  const bool has_precision = asked.precision.has_value() || asked.wants_own_bits;
  const auto taken = do_beside(has_precision ? quick_ : measuring_, [this, id, asked, is_unwanted] {
    if (is_unwanted->load()) return;
    // Nobody reads along, and the log is the loop's.
    const Watch watch{
        .on_notice = [](const std::string&) {},
        .is_cancelled = [this, is_unwanted] { return is_ending_.load() || is_unwanted->load(); }};
    auto read = read_decoder(asked, options_.devices);
    // While it is measured, it is asked for and unloaded by its name.
    if (read) loop_.post([this, id, name = (*read)->name] { on_named(id, name); });
    const auto opened = std::make_shared<Result<Opened>>(read ? settle(*std::move(read), watch)
                                                              : Result<Opened>(read.error()));
    loop_.post([this, id, opened] { on_opened(id, std::move(*opened)); });
  });
  if (!taken) on_opened(id, taken.error());
}

// Where another model has the name, nothing is measured for this one.
void ServingDecoders::on_named(std::uint64_t id, const std::string& name) {
  const auto found = openings_.find(id);
  if (found == openings_.end()) return;  // it was unloaded meanwhile
  const auto named = found->second.ticket.take_name(name);
  if (named) {
    found->second.name = name;
    return;
  }
  *found->second.is_unwanted = true;
  const auto opening = std::move(found->second);
  openings_.erase(found);
  opening.on_done(named.error());
}

void ServingDecoders::on_opened(std::uint64_t id, Result<Opened> opened) {
  const auto found = openings_.find(id);
  if (found == openings_.end()) return;  // it was unloaded meanwhile, or has the name of another
  auto opening = std::move(found->second);
  openings_.erase(found);
  if (!opened) return opening.on_done(opened.error());
  const auto placed = place(*std::move(opened), std::move(opening.ticket), /*is_at_start=*/false);
  if (!placed) return opening.on_done(placed.error());
  (*placed)->on_loaded = std::move(opening.on_done);
  tell_state(**placed);  // every device of it may be drained
}

Result<ServingDecoder*> ServingDecoders::place(Opened opened, ModelRoster::Ticket ticket,
                                               bool is_at_start) {
  auto& decoder = *opened.decoder;
  const auto asked_length = decoder.length_most;
  const auto cache_bytes = MUSTER_TRY(fit_memory(opened));
  if (decoder.length_most < asked_length) {
    events_.on_notice(
        fmt::format("{}: a prompt and its reply may have {} tokens instead of {}, as there are {} "
                    "for keys and values on each device",
                    decoder.name, decoder.length_most, asked_length, human_bytes(cache_bytes)),
        std::nullopt);
  }
  if (!opened.demand) {
    events_.on_notice(fmt::format("{}: loaded without a look at memory, since what it takes is not "
                                  "known: {}",
                                  decoder.name, opened.why_no_demand),
                      std::nullopt);
  }
  decoder.id = next_id_++;
  decoder.ticket = std::move(ticket);
  MUSTER_TRY(start_fleet(decoder, cache_bytes, is_at_start));
  return decoders_.emplace_back(std::move(opened.decoder)).get();
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
    const auto room = memory_.room(device, planned, opened.available);
    if (!room || (least && *room >= *least)) continue;
    least = room;
    tightest = device;
  }
  const auto demand = opened.demand.value_or(DecoderDemand{});
  const auto kept = kept_as(decoder.asked.kv_cache_dtype, decoder.precision);
  const auto cache = fit_cache(decoder.spec, kept, decoder.length_most,
                               {.free_bytes = least.value_or(0), .other_bytes = demand.total()});
  decoder.length_most = cache.length_most;
  if (!opened.demand) return cache.bytes;
  decoder.planned_bytes = demand.total() + cache.bytes;
  if (!least || decoder.planned_bytes <= *least) return cache.bytes;
  return Error{
      ErrorKind::ResourceExhausted,
      fmt::format("{} needs {} on each device (weights {}, a step {}, keys and values {}), and {} "
                  "has {} left: unload another model or name fewer tokens (length_max)",
                  decoder.name, human_bytes(decoder.planned_bytes),
                  human_bytes(demand.weights_bytes), human_bytes(demand.step_bytes()),
                  human_bytes(cache.bytes), options_.devices[tightest].name(),
                  human_bytes(*least))};
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
                              .streams_most = ServingDecoder::kStreamsMost,
                              .has_prefix_cache = options_.has_prefix_cache,
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
    *opening->second.is_unwanted = true;  // others wait for that thread
    openings_.erase(opening);
    on_done(meanwhile);
    return std::size_t{0};
  }
  return no_such_model(name);
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
