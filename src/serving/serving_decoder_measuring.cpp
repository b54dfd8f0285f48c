// Decoders whose precision is measured before they are loaded, one after the other. A worker of its
// own measures, on the thread `measuring_`; which one is next, where, and whether something
// disturbs it is known to the loop alone.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "jobs/decoder_precision.h"
#include "jobs/decoder_probe.h"
#include "serving/serving_decoders.h"

namespace muster {
namespace {

constexpr Duration kLookPeriod = std::chrono::milliseconds(100);
constexpr Duration kRetryWhileLoading = std::chrono::seconds(1);
constexpr Duration kRetryWithoutDevice = std::chrono::seconds(60);

std::string drained_text(const std::string& name) {
  return fmt::format("every device of {} is drained", name);
}

}  // namespace

// ---- On any thread: what is read here never changes ----

std::size_t ServingDecoders::widest(const std::vector<std::size_t>& devices) const {
  return *std::max_element(devices.begin(), devices.end(), [this](std::size_t a, std::size_t b) {
    return options_.devices[a].cpus.size() < options_.devices[b].cpus.size();
  });
}

// Its devices are of one kind (serving_decoder.cpp): that with the most threads stands for all.
DecoderPlace ServingDecoders::place_of(const ServingDecoder& decoder) const {
  return DecoderPlace::of(options_.devices[widest(decoder.devices)]);
}

// Of those that are being loaded the free memory may not tell yet; where it becomes too little, the
// measurement fails and says so.
DecoderPrecisionQuestion ServingDecoders::question_of(const std::string& path,
                                                      std::size_t device) const {
  const auto available = events_.memory_available ? events_.memory_available() : std::nullopt;
  return {.source = path,
          .device = options_.devices[device],
          .memory_bytes = memory_.room(device, 0, available),
          .build = std::string(build_name()),
          .cache_folder = options_.cache_folder};
}

// By a worker beside those that there are, which may keep the device busy meanwhile.
//
// Errors: Cancelled.
Result<ServingDecoders::Settled> ServingDecoders::settle(const Trial& trial) const {
  auto question = question_of(trial.path, trial.device);
  question.is_disturbed = [&trial] { return trial.is_disturbed->load(); };
  const DecoderProbeOptions probing{.device = question.device,
                                    .worker_program = options_.worker_program,
                                    .torch_root = options_.torch_root,
                                    .build = question.build};
  const auto is_cancelled = [&] { return is_ending_.load() || trial.is_unwanted->load(); };
  const auto measure = [&](const ProbeDecoder& probe) -> Result<DecoderVerdict> {
    auto verdict = probe_decoder(probing, probe, clock_, is_cancelled);
    const bool has_died = !verdict && verdict.error().kind == ErrorKind::Unavailable;
    if (!has_died || !trial.has_another) return verdict;
    *trial.has_died = true;
    return Error{ErrorKind::Cancelled, verdict.error().message};  // no verdict on the precision
  };
  Settled settled;
  settled.choice =
      MUSTER_TRY(settle_decoder_precision(question, measure, [&](const std::string& text) {
        loop_.post([this, line = fmt::format("{}: {}", trial.name, text)] {
          events_.on_notice(line, std::nullopt);
        });
      }));
  settled.need = need_of(trial.path, settled.choice.precision, trial.length_most, trial.place);
  return settled;
}

// ---- Which is measured next, and where ----

bool ServingDecoders::is_drained(const ServingDecoder& decoder) const {
  return std::all_of(decoder.devices.begin(), decoder.devices.end(),
                     [this](std::size_t device) { return resting_.contains(device); });
}

// Those on which no worker died that measured it; where one did on each, any. Empty: each is
// drained.
std::vector<std::size_t> ServingDecoders::devices_to_measure(const Opening& opening) const {
  std::vector<std::size_t> awake;
  std::vector<std::size_t> untried;
  for (const auto device : opening.read->devices) {
    if (resting_.contains(device)) continue;
    awake.push_back(device);
    if (!opening.died_on.contains(device)) untried.push_back(device);
  }
  return untried.empty() ? awake : untried;
}

// What waits for memory or for its next try leaves the cores alone.
bool ServingDecoders::is_loading(std::size_t device) const {
  if (events_.is_loading && events_.is_loading(device)) return true;
  for (const auto& decoder : decoders_) {
    const auto found = std::find(decoder->devices.begin(), decoder->devices.end(), device);
    if (found == decoder->devices.end()) continue;
    const auto group = static_cast<std::size_t>(found - decoder->devices.begin());
    const auto view = decoder->fleet->groups().at(group);
    if (view.state == DecoderGroupView::State::Loading && view.pid && !view.waits_for_memory) {
      return true;
    }
  }
  return false;
}

bool ServingDecoders::waits_for_loads(Opening& opening, std::size_t device) const {
  if (!is_loading(device)) return false;
  const auto now = clock_.now();
  if (!opening.waits_until) opening.waits_until = now + kWaitMost;
  return now < *opening.waits_until;
}

// The first that can be. Whoever waits for a load onto devices that are all drained is told so; one
// of the start waits for the first that is resumed.
void ServingDecoders::measure_next() {
  std::vector<std::uint64_t> due;
  for (const auto& [id, opening] : openings_) {
    if (opening.read && !opening.failure) due.push_back(id);
  }
  bool is_waiting = false;
  for (const auto id : due) {
    if (measurement_) return;
    const auto found = openings_.find(id);
    if (found == openings_.end()) continue;
    auto& opening = found->second;
    const auto devices = devices_to_measure(opening);
    if (devices.empty()) {
      if (opening.is_at_start) continue;
      fail_opening(id, {ErrorKind::Unavailable, drained_text(opening.name)});
    } else if (waits_for_loads(opening, widest(devices))) {
      is_waiting = true;
    } else {
      begin_measurement(id, devices);
    }
  }
  if (is_waiting && !measurement_) measure_timer_->set(clock_.now() + kLookPeriod);
}

// devices: on which it may be measured; the one with the most cores is, unless its verdict is kept.
void ServingDecoders::begin_measurement(std::uint64_t id, const std::vector<std::size_t>& devices) {
  const auto& opening = openings_.at(id);
  const auto& decoder = *opening.read;
  const auto device = widest(devices);
  if (!opening.why_died.empty()) {
    const auto* how = opening.died_on.contains(device) ? "again" : "instead";
    events_.on_notice(fmt::format("{}: its precision is settled on {} {}: {}", decoder.name,
                                  options_.devices[device].name(), how, opening.why_died),
                      std::nullopt);
  }
  const Trial trial{.name = decoder.name,
                    .path = decoder.path,
                    .length_most = decoder.length_most,
                    .place = place_of(decoder),
                    .device = device,
                    .has_another = devices.size() > 1 && !opening.died_on.contains(device)};
  measurement_.emplace(Measurement{.opening = id, .trial = trial});
  const auto taken = do_beside(measuring_, [this, id, trial] {
    const auto settled = std::make_shared<Result<Settled>>(settle(trial));
    loop_.post([this, id, settled] { on_settled(id, std::move(*settled)); });
  });
  if (!taken) {
    loop_.post([this, id, error = taken.error()] { on_settled(id, error); });
  }
  look_at_loads();
}

// One that was cancelled is measured elsewhere, or has gone.
void ServingDecoders::on_settled(std::uint64_t id, Result<Settled> settled) {
  const auto trial = measurement_->trial;
  measurement_.reset();
  const auto found = openings_.find(id);
  if (found != openings_.end() && !settled && trial.has_died->load()) {
    found->second.died_on.insert(trial.device);
    found->second.why_died = settled.error().message;
    found->second.waits_until.reset();  // that was for what is loaded on this device
  }
  if (found != openings_.end() && settled) {
    Opened opened{.decoder = std::move(found->second.read), .need = std::move(settled->need)};
    auto& decoder = *opened.decoder;
    decoder.take_precision(std::move(settled->choice));
    events_.on_notice(
        fmt::format("{}: precision {}: {}", decoder.name, decoder_precision_name(decoder.precision),
                    decoder.precision_reason),
        std::nullopt);
    place_opening(id, std::move(opened));
  } else if (found != openings_.end() && settled.error().kind != ErrorKind::Cancelled) {
    fail_opening(id, settled.error());
  }
  measure_next();
}

// While one is measured: whether a load has begun beside it. Else what waits for loads is tried.
void ServingDecoders::look_at_loads() {
  if (!measurement_) return measure_next();
  const auto& trial = measurement_->trial;
  if (is_loading(trial.device)) *trial.is_disturbed = true;
  if (!trial.is_disturbed->load()) measure_timer_->set(clock_.now() + kLookPeriod);
}

// ---- What an operator asks for ----

void ServingDecoders::end_measurement_on(std::size_t device) {
  if (measurement_ && measurement_->trial.device == device) *measurement_->trial.is_unwanted = true;
  if (!measurement_) measure_next();  // whoever waits may have no device left
}

void ServingDecoders::try_failed_again(std::size_t device) {
  for (auto& [id, opening] : openings_) {
    opening.died_on.erase(device);
    if (opening.died_on.empty()) opening.why_died.clear();
    if (!opening.failure) continue;
    const auto& devices = opening.read->devices;
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) opening.failure.reset();
  }
  measure_next();
}

// ---- What is shown ----

CallError ServingDecoders::not_yet(const Opening& opening) const {
  const auto tell = [](std::string text, Duration retry_after) {
    return CallError{.error = {ErrorKind::Unavailable, std::move(text)},
                     .retry_after = retry_after};
  };
  const auto& name = opening.name.empty() ? std::string("the model") : opening.name;
  if (opening.failure) {
    return tell(fmt::format("no device can load {}", name), kRetryWithoutDevice);
  }
  if (opening.read && is_drained(*opening.read)) {
    return tell(drained_text(name), kRetryWithoutDevice);
  }
  return tell(fmt::format("{} is being loaded", name), kRetryWhileLoading);
}

ServedDecoderStatus ServingDecoders::status_of(std::uint64_t id, const Opening& opening) const {
  const auto& decoder = *opening.read;
  auto status = decoder.description();
  const bool is_measured = measurement_ && measurement_->opening == id;
  const std::string_view doing = is_measured ? "is being measured" : "is to be measured";
  status.reason = fmt::format("its precision {}", doing);
  if (!status.is_precision_known) status.precision_reason = doing;
  if (opening.failure) {
    status.state = ModelState::Failed;
    status.reason = opening.failure->message;
  } else if (is_drained(decoder)) {
    status.state = ModelState::Drained;
    status.reason = drained_text(decoder.name);
  }
  for (const auto index : decoder.devices) {
    const auto& device = options_.devices[index];
    auto& worker = status.devices.emplace_back();
    worker.name = device.name();
    worker.is_gpu = runs_as_gpu(device.kind);
    worker.reason = opening.failure ? opening.failure->message
                                    : fmt::format("the precision of {} {}", decoder.name, doing);
    if (resting_.contains(index)) {
      const bool is_ending = is_measured && measurement_->trial.device == index;
      worker.state = is_ending ? GroupState::Draining : GroupState::Drained;
      worker.reason = "drained";
      worker.is_asked_for = true;
    } else if (opening.failure) {
      worker.state = GroupState::GivenUp;
      worker.failure_kind = opening.failure->kind;
    }
  }
  return status;
}

}  // namespace muster
