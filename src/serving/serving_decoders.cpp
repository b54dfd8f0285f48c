// Which decoder a name means, the turns of their fleets on the loop, and what an operator asks of
// their workers. How they come and go is in serving_decoder_loading.cpp.

#include "serving/serving_decoders.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr Duration kRetryWhileLoading = std::chrono::seconds(1);

}  // namespace

ServingDecoders::ServingDecoders(const ServeOptions& options, ModelRoster& roster, EventLoop& loop,
                                 Events events, const Clock& clock)
    : options_(options),
      roster_(roster),
      loop_(loop),
      events_(std::move(events)),
      clock_(clock),
      memory_(options.machine, options.devices),
      drain_limit_(options.drain_limit) {}

ServingDecoders::~ServingDecoders() {
  is_ending_ = true;
  quick_.jobs.close();
  measuring_.jobs.close();
}

ServingDecoder* ServingDecoders::find_id(std::uint64_t id) const {
  for (const auto& decoder : decoders_) {
    if (decoder->id == id) return decoder.get();
  }
  return nullptr;
}

bool ServingDecoders::has(std::string_view name) const {
  return std::any_of(decoders_.begin(), decoders_.end(), [&](const auto& decoder) {
    return !decoder->is_leaving && decoder->name == name;
  });
}

std::variant<ServingDecoder*, CallError> ServingDecoders::find(const std::string& model) const {
  for (const auto& decoder : decoders_) {
    if (!decoder->is_leaving && (model.empty() || decoder->name == model)) return decoder.get();
  }
  for (const auto& [id, opening] : openings_) {
    if (!model.empty() && opening.name != model) continue;
    const auto& name = opening.name.empty() ? std::string("the model") : opening.name;
    return CallError{.error = {ErrorKind::Unavailable, fmt::format("{} is being loaded", name)},
                     .retry_after = kRetryWhileLoading};
  }
  return CallError{.error = no_such_model(model)};
}

// A model that is on its way out is named: whoever asks for it has not mistyped.
Error ServingDecoders::no_such_model(const std::string& name) const {
  std::vector<std::string> names;
  std::vector<std::string> leaving;
  for (const auto& decoder : decoders_) {
    (decoder->is_leaving ? leaving : names).push_back(decoder->name);
  }
  const auto is_named = [&](const std::string& one) { return name.empty() || one == name; };
  const auto gone = std::find_if(leaving.begin(), leaving.end(), is_named);
  if (gone != leaving.end()) {
    return {ErrorKind::NotFound,
            fmt::format("{} was unloaded and takes no new requests{}", *gone,
                        names.empty() ? "; no other model that generates is served here" : "")};
  }
  if (names.empty()) {
    return {ErrorKind::NotFound,
            fmt::format("no model that generates is served here{}: start with muster serve "
                        "FILE.gguf, or muster ctl load FILE.gguf",
                        name.empty() ? "" : ", and none of the name " + name)};
  }
  const auto nearest = nearest_name(name, names);
  return {ErrorKind::NotFound,
          fmt::format("no model that generates has this name: {}{}", name,
                      nearest ? "; did you mean " + *nearest + "?"
                              : fmt::format("; served here: {}", fmt::join(names, ", ")))};
}

// ---- Turns on the loop ----

void ServingDecoders::pump(ServingDecoder& decoder) {
  if (decoder.is_broken) return;
  if (const auto stepped = decoder.fleet->step(); !stepped) {
    decoder.is_broken = true;
    return events_.on_fatal(stepped.error());
  }
  decoder.timer->set(decoder.fleet->next_deadline());
  if (decoder.is_leaving && decoder.fleet->is_stopped()) {
    loop_.post([this, id = decoder.id] { remove(id); });
  }
}

void ServingDecoders::tell_state(ServingDecoder& decoder) {
  const bool is_ready = decoder.fleet->is_ready();
  if (std::exchange(decoder.was_ready, is_ready) != is_ready && !decoder.is_leaving) {
    events_.on_notice(
        fmt::format("model {}: {}", decoder.name, is_ready ? "ready" : "no device has it now"),
        std::nullopt);
  }
  if (!decoder.on_loaded) return;
  if (is_ready) {
    std::exchange(decoder.on_loaded, nullptr)(decoder.status(options_.devices));
  } else if (!decoder.can_work()) {
    const auto& workers = decoder.fleet->workers();
    leave(decoder, workers.is_to_rest()
                       ? Error{ErrorKind::Unavailable,
                               fmt::format("every device of {} is drained", decoder.name)}
                       : workers.cannot_work_error());
  }
}

// ---- What an operator asks for ----

// Those that are leaving, too: a device has drained only when nothing runs on it.
void ServingDecoders::for_workers_on(std::size_t device,
                                     void (DecoderWorkers::*change)(std::size_t)) {
  for (const auto& decoder : decoders_) {
    for (std::size_t i = 0; i < decoder->devices.size(); ++i) {
      if (decoder->devices[i] == device) (decoder->fleet->workers().*change)(i);
    }
  }
}

void ServingDecoders::set_drain_limit(Duration limit) {
  drain_limit_ = limit;
  for (const auto& decoder : decoders_) decoder->fleet->workers().set_drain_limit(limit);
}

void ServingDecoders::drain(std::size_t device) {
  resting_.insert(device);
  for_workers_on(device, &DecoderWorkers::drain);
}

void ServingDecoders::resume(std::size_t device) {
  resting_.erase(device);
  for_workers_on(device, &DecoderWorkers::resume);
}

void ServingDecoders::restart(std::size_t device) {
  resting_.erase(device);
  for_workers_on(device, &DecoderWorkers::restart);
}

// ---- What is shown ----

std::vector<ServedDecoderStatus> ServingDecoders::served() const {
  std::vector<ServedDecoderStatus> all;
  for (const auto& decoder : decoders_) {
    if (!decoder->is_leaving) all.push_back(decoder->status(options_.devices));
  }
  return all;
}

std::vector<ServedDecoderStatus> ServingDecoders::hosted() const {
  std::vector<ServedDecoderStatus> all;
  for (const auto& decoder : decoders_) all.push_back(decoder->status(options_.devices));
  return all;
}

bool ServingDecoders::is_ready() const {
  return std::any_of(decoders_.begin(), decoders_.end(), [](const auto& decoder) {
    return !decoder->is_leaving && !decoder->is_broken && decoder->fleet->is_ready();
  });
}

}  // namespace muster
