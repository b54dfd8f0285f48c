// Which decoder a name means, the turns of their fleets on the loop, and what an operator asks of
// their workers. How they come and go is in serving_decoder_loading.cpp, and what is measured
// before in serving_decoder_measuring.cpp.

#include "serving/serving_decoders.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {

ServingDecoders::ServingDecoders(const ServeOptions& options, ModelRoster& roster, EventLoop& loop,
                                 Events events, const Clock& clock)
    : options_(options),
      roster_(roster),
      loop_(loop),
      events_(std::move(events)),
      clock_(clock),
      memory_(options.machine, options.devices),
      measure_timer_(loop.timer([this] { look_at_loads(); })),
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

// Any for the empty name.
std::map<std::uint64_t, ServingDecoders::Opening>::const_iterator ServingDecoders::find_opening(
    const std::string& model) const {
  return std::find_if(openings_.begin(), openings_.end(), [&](const auto& entry) {
    return model.empty() || entry.second.name == model;
  });
}

bool ServingDecoders::has(std::string_view name) const {
  const bool is_here = std::any_of(decoders_.begin(), decoders_.end(), [&](const auto& decoder) {
    return !decoder->is_leaving && decoder->name == name;
  });
  return is_here || std::any_of(openings_.begin(), openings_.end(), [&](const auto& entry) {
           return entry.second.read && entry.second.name == name;
         });
}

// One of the start that is still measured is the first all the same.
std::variant<ServingDecoder*, CallError> ServingDecoders::find(const std::string& model) const {
  const auto opening = find_opening(model);
  const bool is_opening = opening != openings_.end();
  for (const auto& decoder : decoders_) {
    if (decoder->is_leaving || (!model.empty() && decoder->name != model)) continue;
    if (is_opening && opening->second.is_at_start && opening->first < decoder->id) break;
    return decoder.get();
  }
  if (is_opening) return not_yet(opening->second);
  return CallError{.error = no_such_model(model)};
}

// A model that is on its way out is named: whoever asks for it has not mistyped.
Error ServingDecoders::no_such_model(const std::string& name) const {
  std::vector<std::string> names;
  std::vector<std::string> leaving;
  for (const auto& decoder : decoders_) {
    (decoder->is_leaving ? leaving : names).push_back(decoder->name);
  }
  for (const auto& [id, opening] : openings_) {
    if (opening.read) names.push_back(opening.name);  // shown with the others
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
  end_measurement_on(device);
  for_workers_on(device, &DecoderWorkers::drain);
}

void ServingDecoders::resume(std::size_t device) {
  resting_.erase(device);
  for_workers_on(device, &DecoderWorkers::resume);
  try_failed_again(device);
}

void ServingDecoders::restart(std::size_t device) {
  resting_.erase(device);
  for_workers_on(device, &DecoderWorkers::restart);
  try_failed_again(device);
}

// ---- What is shown ----

// By id, those that are measured among them.
std::vector<ServedDecoderStatus> ServingDecoders::statuses(bool has_leaving) const {
  std::vector<ServedDecoderStatus> all;
  auto opening = openings_.begin();
  const auto add_openings = [&](std::uint64_t id_end) {
    for (; opening != openings_.end() && opening->first < id_end; ++opening) {
      if (opening->second.read) all.push_back(status_of(opening->first, opening->second));
    }
  };
  for (const auto& decoder : decoders_) {
    add_openings(decoder->id);
    if (has_leaving || !decoder->is_leaving) all.push_back(decoder->status(options_.devices));
  }
  add_openings(next_id_);
  return all;
}

std::vector<ServedDecoderStatus> ServingDecoders::served() const {
  return statuses(/*has_leaving=*/false);
}

std::vector<ServedDecoderStatus> ServingDecoders::hosted() const {
  return statuses(/*has_leaving=*/true);
}

bool ServingDecoders::is_ready() const {
  return std::any_of(decoders_.begin(), decoders_.end(), [](const auto& decoder) {
    return !decoder->is_leaving && !decoder->is_broken && decoder->fleet->is_ready();
  });
}

}  // namespace muster
