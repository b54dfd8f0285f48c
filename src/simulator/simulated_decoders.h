#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/decoder_streams.h"
#include "coordinator/decoder_workers.h"
#include "coordinator/group_processes.h"
#include "coordinator/step_signal.h"
#include "net/frame.h"
#include "simulator/simulated_decoder_worker.h"
#include "simulator/step_simulation.h"
#include "simulator/turn_checks.h"
#include "spec/device.h"
#include "spec/generation.h"
#include "wire/messages.h"

namespace muster {

/// A clock that stands still until it is set.
class SimulatedClock final : public Clock {
 public:
  TimePoint now() const override { return at; }
  TimePoint at{};
};

/// The events of a world of replies, one after the other; see `simulate_steps`. It stands where
/// DecoderFleet and GenerationService do: between the owners of streams and workers, the processes
/// and the calls. Messages take no time, and a worker reads them between two steps.
///
/// Threads: owned by one.
class SimulatedDecoders final : private DecoderWorkerClient, private GroupProcesses {
 public:
  /// world: outlives it.
  explicit SimulatedDecoders(const StepWorld& world);

  StepWorldResult run();

 private:
  enum class EventKind : std::uint8_t { Arrival, Leaving, StepDone };
  enum class Fate : std::uint8_t { Coming, Open, Ended, Refused, Cancelled };

  struct Event {
    TimePoint at;
    std::uint64_t order = 0;  // among events of one time: as they were made
    EventKind kind = EventKind::Arrival;
    std::size_t subject = 0;  // a reply or a worker
  };
  struct Later {
    bool operator()(const Event& left, const Event& right) const {
      return left.at != right.at ? left.at > right.at : left.order > right.order;
    }
  };
  struct Reply {
    Fate fate = Fate::Coming;
    StreamId stream = 0;
    std::uint32_t token_count = 0;  // that were told
    TimePoint first_at{};
    TimePoint last_at{};
  };
  struct Sent {
    MessageType type = MessageType::Generate;
    std::uint64_t id = 0;
    std::vector<std::byte> payload = {};
  };
  struct Worker {
    SimulatedDecoderWorker worker;
    std::vector<Sent> inbox = {};
    std::set<StreamId> open = {};  // it was given them and has not answered for them yet
  };

  static DecoderFleetOptions options_of(const StepWorld& world);
  SimulatedSpeech speech() const;
  DecoderFleetEvents events();
  void load_workers();
  void tell(std::size_t group, MessageType type, std::uint64_t id,
            const std::vector<std::byte>& payload);
  void handle(const Event& event);
  void on_arrival(std::size_t index);
  bool is_let_in(std::size_t index) const;
  void on_leaving(std::size_t index);
  void on_step_done(std::size_t group);
  void settle();
  bool read_inboxes();
  void begin_steps();
  void check_places();
  void check_end();
  void on_token(StreamId stream, const GeneratedToken& token);
  void on_finished(StreamId stream, FinishReason reason);
  std::optional<std::uint32_t> token_at(StreamId stream, std::size_t position) const;
  void at(TimePoint time, EventKind kind, std::size_t subject);
  void violated(const std::string& what);

  // DecoderWorkerClient: for the streams, which are made after the workers.
  Status on_stream_frame(std::size_t group, const FrameHeader& header,
                         std::span<const std::byte> payload) override {
    return streams_.on_stream_frame(group, header, payload);
  }
  std::size_t on_lost(std::size_t group, const DecoderLoss& loss) override {
    return streams_.on_lost(group, loss);
  }
  std::size_t owed_count(std::size_t group) const override { return streams_.owed_count(group); }

  // GroupProcesses: what is sent is read by a simulated worker, and none ever ends.
  Result<std::vector<pid_t>> start(std::size_t group, const std::vector<Device>& devices) override;
  void send(std::size_t group, MessageType type, std::uint64_t id,
            std::vector<std::byte> payload) override;
  void end(std::size_t group, GroupEnding how) override;
  std::optional<WorkerDeath> reap(std::size_t group, Duration limit) override;
  std::string last_output(std::size_t group,
                          const std::function<void(const std::string&)>& on_line) override;
  void leave(std::size_t group) override;

  const StepWorld& world_;
  const SimulatedSpeech speech_;
  const DecoderFleetOptions options_;
  const DecoderFleetEvents events_;
  SimulatedClock clock_;
  StepSignal signal_;
  DecoderWorkers workers_;
  DecoderStreams streams_;
  std::vector<Worker> simulated_;
  std::vector<Reply> replies_;
  std::unordered_map<StreamId, std::size_t> reply_of_;
  TurnChecks turns_;
  std::priority_queue<Event, std::vector<Event>, Later> events_to_come_;
  std::uint64_t next_order_ = 0;
  std::uint64_t steps_left_ = 0;  // a world that takes more does not end
  StepWorldResult result_;
};

}  // namespace muster
