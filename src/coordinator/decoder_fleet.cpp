// A step has two halves: what has happened, of which each owner changes its own state alone, and
// what follows for the workers (drains, cancellations, streams), outside of all callbacks.

#include "coordinator/decoder_fleet.h"

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
      workers_(options_, {.processes = runner_,
                          .client = *this,
                          .signal = signal_,
                          .clock = clock,
                          .on_notice = events_.on_notice}),
      streams_(options_,
               {.workers = workers_, .events = events_, .signal = signal_, .clock = clock}) {}

Result<std::unique_ptr<DecoderFleet>> DecoderFleet::start(DecoderFleetOptions options,
                                                          DecoderFleetEvents events,
                                                          const Clock& clock) {
  std::unique_ptr<DecoderFleet> fleet(
      new DecoderFleet(std::move(options), std::move(events), clock));
  MUSTER_TRY(fleet->workers_.start());
  return fleet;
}

std::vector<DecoderGroupView> DecoderFleet::groups() const {
  std::vector<DecoderGroupView> views;
  for (std::size_t i = 0; i < workers_.count(); ++i) {
    views.push_back(workers_.view(i));
    streams_.add_to_view(i, views.back());
  }
  return views;
}

Status DecoderFleet::step() {
  signal_.begin_step();
  MUSTER_TRY(runner_.wait(Duration{0}));
  MUSTER_TRY(runner_.handle(workers_));
  const auto now = clock_.now();
  workers_.check_time(now);
  workers_.finish_drains(now);
  streams_.settle();
  runner_.watch_writes();
  signal_.end_step();
  if (signal_.take_change()) events_.on_change();
  return Done{};
}

TimePoint DecoderFleet::next_deadline() const {
  return signal_.is_due() ? clock_.now() : workers_.next_deadline();
}

}  // namespace muster
