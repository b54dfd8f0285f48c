// Start, end and the turns of the loop. All state belongs to the loop's thread; long work has
// threads of its own. The fleet is stepped when its descriptor or its timer fires and never waits
// inside. A fault of a step is final: the service stops placing work and reports it once. Texts
// that arrive in one turn are placed together at its end, so that a batch can be cut from all of
// them.

#include "serving/serving_loop.h"

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "base/wall_clock.h"

namespace muster {

Result<std::unique_ptr<InferenceService>> InferenceService::start(const ServeOptions& options,
                                                                  EventLoop& loop, Events events,
                                                                  const Clock& clock) {
  auto service = std::make_unique<ServingLoop>(options, loop, std::move(events), clock);
  MUSTER_TRY(service->open());
  return std::unique_ptr<InferenceService>(std::move(service));
}

ServingLoop::ServingLoop(const ServeOptions& options, EventLoop& loop, Events events,
                         const Clock& clock)
    : options_(options),
      loop_(loop),
      events_(std::move(events)),
      clock_(clock),
      admission_(options.admission),
      roster_(options.models_most),
      fleet_timer_(loop.timer([this] { pump(); })),
      deadline_timer_(loop.timer([this] { expire(); })),
      drain_timer_(loop.timer([this] { finish_drain(); })),
      hold_timer_(loop.timer([this] {
        next_refusal_.reset();
        refuse_idle_calls();
      })) {}

// The flag comes first, so that a job which was queued is dropped instead of begun; closing the
// queues then ends the threads' waits.
ServingLoop::~ServingLoop() {
  is_ending_ = true;
  jobs_.close();
  asides_.close();
  if (reader_.joinable()) reader_.join();
  if (encoder_.joinable()) encoder_.join();
}

Status ServingLoop::open() {
  cache_ = MUSTER_TRY(VectorCache::open(options_.cache));
  fleet_ = MUSTER_TRY(Fleet::start({.devices = options_.devices,
                                    .worker_program = options_.worker_program,
                                    .torch_root = options_.torch_root,
                                    .build = std::string(build_name()),
                                    .batch_tokens = options_.batch_tokens,
                                    .dispatch = options_.dispatch,
                                    .weights = options_.weights,
                                    .idle = idle_devices(),
                                    .gives_up = false,
                                    .is_low_latency = options_.is_low_latency,
                                    .canary_period = options_.canary_period,
                                    .drain_limit = options_.drain_limit},
                                   fleet_events(), clock_));
  MUSTER_TRY(open_first_models());
  note_classes(fleet_->groups());
  fleet_watch_ = loop_.watch(fleet_->loop().wait_fd(), [this] { pump(); });
  reader_ = std::jthread([this] {
    while (const auto job = jobs_.take()) {
      if (!is_ending_) (*job)();
    }
  });
  place_soon();
  return Done{};
}

FleetEvents ServingLoop::fleet_events() {
  return {
      .on_row = [this](ItemKey item, std::span<const std::byte> row,
                       std::size_t device) { on_row(item, row, device); },
      .on_item_failed = [this](ItemKey item, const Error& error) { on_item_failed(item, error); },
      .on_notice = [this](const std::string& text,
                          std::optional<std::size_t> device) { notice(text, device); },
      .on_change = [this] { on_fleet_change(); },
      .on_wrong_canary = [this](std::size_t device) { on_wrong_canary(device); }};
}

// The fleet's sentences begin with the device's name, which a log has a place of its own for.
void ServingLoop::notice(std::string_view text, std::optional<std::size_t> device) const {
  if (!device) return events_.on_notice(std::string(text), std::nullopt);
  const auto name = options_.devices[*device].name();
  for (const auto& prefix : {name + ": ", "[" + name + "] "}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  events_.on_notice(std::string(text), name);
}

// Requests that come in one turn of the loop are placed together: a batch is then cut from all of
// them.
void ServingLoop::place_soon() {
  if (std::exchange(is_placing_posted_, true)) return;
  loop_.post([this] {
    is_placing_posted_ = false;
    if (is_broken_) return;
    fleet_->loop().place_submitted();
    fleet_timer_->set(fleet_->loop().next_deadline());
  });
}

void ServingLoop::pump() {
  if (is_broken_) return;
  if (const auto stepped = fleet_->loop().step(Duration{0}); !stepped) {
    is_broken_ = true;
    events_.on_fatal(stepped.error());
    return;
  }
  fleet_timer_->set(fleet_->loop().next_deadline());
}

// A model that is to leave stays until its last call has ended, since that call still needs its
// text encoder.
void ServingLoop::on_call_end(ModelId model) {
  const auto* left = models_.find(model);
  if (left != nullptr && left->is_leaving && calls_.count_of(model) == 0) {
    fleet_->models().unload(model);
    models_.remove(model);
    place_soon();
  }
  if (counts_.is_draining && calls_.count() == 0) finish_drain();
}

void ServingLoop::drain(std::function<void()> on_done) {
  counts_.is_draining = true;
  end_loads();
  on_drained_ = std::move(on_done);
  drain_timer_->set(clock_.now() + options_.drain_limit);
  if (calls_.count() == 0) finish_drain();
}

// Whichever comes first ends the drain: the last call or the limit. The callback is taken out
// before it is called, so the other one finds nothing to do.
void ServingLoop::finish_drain() {
  drain_timer_->clear();
  const auto on_done = std::exchange(on_drained_, nullptr);
  if (!on_done) return;
  const CallError ended{.error = {ErrorKind::Unavailable, "the server ended before the answer"},
                        .retry_after = std::nullopt};
  for (const auto id : calls_.ids()) fail(id, ended);
  on_done();
}

void ServingLoop::reconfigure(const ServeOptions& options,
                              std::map<std::string, CallerLimits> limits) {
  options_.dispatch = options.dispatch;
  options_.admission = options.admission;
  options_.auto_truncate = options.auto_truncate;
  options_.deadline = options.deadline;
  options_.deadline_most = options.deadline_most;
  options_.drain_limit = options.drain_limit;
  fleet_->placement().set_dispatch(options.dispatch);
  admission_.set_options(options.admission);
  admission_.set_limits(std::move(limits));
  place_soon();
  // What is held waits for another budget now.
  loop_.post([this] {
    next_refusal_.reset();
    refuse_idle_calls();
  });
}

// Counters are kept as things happen; what can be read off other parts is not counted a second
// time.
ServiceStatus ServingLoop::status() const {
  auto status = counts_;
  status.waiting_call_count = calls_.count();
  status.cache = cache_->status();
  return status;
}

std::optional<Error> ServingLoop::tend_cache() {
  cache_->tend(unix_seconds());
  return cache_->file_error();
}

// One device with one model is enough: load balancers ask whether requests are worth sending here.
bool ServingLoop::is_ready() const {
  if (counts_.is_draining || is_broken_) return false;
  const auto devices = fleet_->groups();
  return std::any_of(devices.begin(), devices.end(), [&](const GroupStatus& device) {
    return device.state == GroupState::Ready &&
           std::any_of(device.models.begin(), device.models.end(),
                       [](const auto& model) { return model.second.state == ModelState::Ready; });
  });
}

}  // namespace muster
