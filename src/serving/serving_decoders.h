#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/inbox.h"
#include "base/result.h"
#include "jobs/decoder_precision.h"
#include "net/event_loop.h"
#include "serving/decoder_memory.h"
#include "serving/generation_call.h"
#include "serving/model_roster.h"
#include "serving/serve_options.h"
#include "serving/serving_decoder.h"

namespace muster {

/// The decoders of a server: loaded and unloaded while it runs, each with a fleet of its own, whose
/// turns on the loop are taken here.
///
/// A decoder is loaded only where its workers fit into the memory of their devices, as a plan
/// counts it. One that is unloaded takes no new calls and ends those that it has, until the drain
/// limit; until its workers are gone it counts in memory, and an operator reaches it with their
/// device.
///
/// One whose precision nobody names, and of which no measurement is kept, is measured before it is
/// loaded: one at a time, on a device that no operator has drained, once what is being loaded there
/// is loaded; where the worker that measures dies, on another device of its own. Meanwhile it has
/// its name and is shown as loading. A load that begins beside a
/// measurement does not wait for it: the measurement is not kept then.
///
/// Threads: the loop's; files are read, and precisions measured, on threads of its own.
class ServingDecoders {
 public:
  using OnLoaded = std::function<void(Result<ServedDecoderStatus>)>;

  /// How long a measurement waits for loads that do not end: then it is made beside them, and is
  /// not kept.
  static constexpr Duration kWaitMost = std::chrono::minutes(5);

  /// What its owner hears and is asked.
  struct Events {
    /// A sentence for the log; device is set when it is about one.
    std::function<void(const std::string&, std::optional<std::string> device)> on_notice;
    /// Workers of another build.
    std::function<void(const Error&)> on_fatal;
    /// What a new program can have of the host's memory now; may be empty. Threads: any.
    std::function<std::optional<std::uint64_t>()> memory_available;
    /// Whether a model that embeds or ranks is being loaded on a device; may be empty.
    std::function<bool(std::size_t device)> is_loading;
    // As DecoderFleetEvents.
    std::function<void(ServingDecoder&, StreamId, std::uint32_t cached_count)> on_begun;
    std::function<void(ServingDecoder&, StreamId, const GeneratedToken&)> on_token;
    std::function<void(ServingDecoder&, StreamId, FinishReason)> on_finished;
    std::function<void(ServingDecoder&, StreamId, const Error&, bool was_given)> on_failed;
    /// Replies of it that have not ended.
    std::function<std::size_t(const ServingDecoder&)> reply_count;
    /// All of them are to fail.
    std::function<void(const ServingDecoder&, const Error&)> fail_calls;
  };

  /// roster, loop and clock outlive it.
  ServingDecoders(const ServeOptions& options, ModelRoster& roster, EventLoop& loop, Events events,
                  const Clock& clock);
  ~ServingDecoders();
  ServingDecoders(const ServingDecoders&) = delete;
  ServingDecoders& operator=(const ServingDecoders&) = delete;

  /// One of the server's start; it loads while the caller goes on. Where its precision is to be
  /// measured, that begins once the loop runs; what is wrong with it then is its state, as where no
  /// device can load it.
  ///
  /// Errors: those of read_decoder, of the roster and of DecoderFleet::start; ResourceExhausted
  /// where it does not fit.
  Status open(const ServedModel& asked);

  /// on_done: when a device has it, or none can.
  void load(const ServedModel& asked, OnLoaded on_done);

  /// How many of its replies go on. Whoever waits for it to be loaded is told that it was unloaded.
  ///
  /// Errors: NotFound, with the nearest name.
  Result<std::size_t> unload(const std::string& name);

  /// The server ends: whoever waits for a model that has no workers yet is told Unavailable, and so
  /// is who asks for one from now on. What is measured for them ends.
  void end_loads();

  /// Whether a name leads to a decoder (jobs/decoder_source.h), which only files tell.
  void ask_kind(const std::string& model, std::function<void(Result<bool>)> on_answer);

  /// The decoder of a name; of the empty one the first. An Unavailable error where it is being
  /// loaded, else NotFound.
  std::variant<ServingDecoder*, CallError> find(const std::string& model) const;
  bool has(std::string_view name) const;

  /// A call of it has ended.
  void on_call_end(const ServingDecoder& decoder);

  /// How long replies may go on after an unload, a drain or a restart that begins from now on.
  void set_drain_limit(Duration limit);

  // What an operator does to a device, for the workers of all decoders on it.
  void drain(std::size_t device);
  void resume(std::size_t device);
  void restart(std::size_t device);

  /// Those that take calls, and those whose precision is measured before they do.
  std::vector<ServedDecoderStatus> served() const;
  /// Those as well that are leaving.
  std::vector<ServedDecoderStatus> hosted() const;
  bool is_ready() const;
  const std::vector<std::unique_ptr<ServingDecoder>>& all() const { return decoders_; }

 private:
  /// What a worker takes, and what there is.
  struct Need {
    std::optional<DecoderDemand> demand = {};     // nullopt: not known
    std::string why_unknown = {};                 // then
    std::optional<std::uint64_t> available = {};  // of the host's memory
  };
  /// A decoder whose files were read.
  struct Opened {
    std::unique_ptr<ServingDecoder> decoder;
    Need need = {};  // where its precision is known
  };
  /// One that has no workers yet: its files are read, or its precision is measured.
  struct Opening {
    std::string name;  // empty: not known yet
    ModelRoster::Ticket ticket;
    OnLoaded on_done = {};  // empty: of the server's start
    /// The thread that reads it looks there.
    std::shared_ptr<std::atomic<bool>> is_unwanted = std::make_shared<std::atomic<bool>>(false);
    bool is_at_start = false;
    std::unique_ptr<ServingDecoder> read = {};  // while it is measured, or waits for that
    std::optional<TimePoint> waits_until = {};  // for what is being loaded where it is measured
    std::set<std::size_t> died_on = {};         // devices on which workers that measured it died
    std::string why_died = {};                  // how the last of them did
    std::optional<Error> failure = {};          // of the server's start alone
  };
  /// What the thread that measures is told.
  struct Trial {
    std::string name;
    std::string path;
    std::uint32_t length_most = 0;
    DecoderPlace place = {};   // of the workers
    std::size_t device = 0;    // that is measured
    bool has_another = false;  // of its devices, where it may be measured if the worker dies
    std::shared_ptr<std::atomic<bool>> is_unwanted = std::make_shared<std::atomic<bool>>(false);
    std::shared_ptr<std::atomic<bool>> is_disturbed = std::make_shared<std::atomic<bool>>(false);
    /// The worker died, and another device is to be measured.
    std::shared_ptr<std::atomic<bool>> has_died = std::make_shared<std::atomic<bool>>(false);
  };
  /// What it finds.
  struct Settled {
    DecoderPrecisionChoice choice = {};
    Need need = {};
  };
  struct Measurement {
    std::uint64_t opening = 0;
    Trial trial;
  };

  static constexpr std::size_t kFilesMost = 16;  // models that may wait to be read
  /// A thread beside the loop, started by the first that waits for it.
  struct Beside {
    Inbox<std::function<void()>> jobs{kFilesMost};
    std::jthread thread = {};  // the last member: it ends first
  };

  // serving_decoder_loading.cpp
  Result<Opened> read(const ServedModel& asked) const;
  Need need_of(const std::string& path, DecoderPrecision precision, std::uint32_t length_most,
               const DecoderPlace& place) const;
  Status do_beside(Beside& beside, std::function<void()> job);
  void on_read(std::uint64_t id, Result<Opened> opened);
  void place_opening(std::uint64_t id, Opened opened);
  void fail_opening(std::uint64_t id, const Error& error);
  void tell_unwanted(std::uint64_t id, const Opening& opening);
  Result<ServingDecoder*> place(Opened& opened, std::uint64_t id, bool is_at_start);
  Result<std::uint64_t> fit_memory(const Opened& opened) const;
  Status start_fleet(ServingDecoder& decoder, std::uint64_t cache_bytes, bool is_at_start);
  void leave(ServingDecoder& decoder, const Error& why_not_loaded);
  void let_go(std::uint64_t id);
  void remove(std::uint64_t id);

  // serving_decoder_measuring.cpp
  DecoderPrecisionQuestion question_of(const std::string& path, std::size_t device) const;
  Result<Settled> settle(const Trial& trial) const;
  std::size_t widest(const std::vector<std::size_t>& devices) const;
  DecoderPlace place_of(const ServingDecoder& decoder) const;
  std::vector<std::size_t> devices_to_measure(const Opening& opening) const;
  bool is_loading(std::size_t device) const;
  bool waits_for_loads(Opening& opening, std::size_t device) const;
  void measure_next();
  void begin_measurement(std::uint64_t id, const std::vector<std::size_t>& devices);
  void on_settled(std::uint64_t id, Result<Settled> settled);
  void look_at_loads();
  void end_measurement_on(std::size_t device);
  void try_failed_again(std::size_t device);
  CallError not_yet(const Opening& opening) const;
  bool is_drained(const ServingDecoder& decoder) const;
  ServedDecoderStatus status_of(std::uint64_t id, const Opening& opening) const;

  // serving_decoders.cpp
  ServingDecoder* find_id(std::uint64_t id) const;
  std::map<std::uint64_t, Opening>::const_iterator find_opening(const std::string& model) const;
  std::vector<ServedDecoderStatus> statuses(bool has_leaving) const;
  Error no_such_model(const std::string& name) const;
  void pump(ServingDecoder& decoder);
  void tell_state(ServingDecoder& decoder);
  void for_workers_on(std::size_t device, void (DecoderWorkers::*change)(std::size_t));

  const ServeOptions options_;
  ModelRoster& roster_;
  EventLoop& loop_;
  const Events events_;
  const Clock& clock_;
  const DeviceMemory memory_;
  std::vector<std::unique_ptr<ServingDecoder>> decoders_;  // by id: in the order they came
  std::map<std::uint64_t, Opening> openings_;
  std::optional<Measurement> measurement_;           // under way
  std::unique_ptr<EventLoop::Timer> measure_timer_;  // what is loaded is looked at
  std::set<std::size_t> resting_;                    // devices that an operator has drained
  Duration drain_limit_;
  std::uint64_t next_id_ = 1;
  bool takes_loads_ = true;

  std::atomic<bool> is_ending_ = false;
  // The last members: they end first. What measures nothing waits for no measurement.
  Beside quick_;  // questions about files, and what is read of them before a load
  Beside measuring_;
};

}  // namespace muster
