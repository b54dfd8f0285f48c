#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/inbox.h"
#include "jobs/precision_settling.h"
#include "jobs/text_encoding.h"
#include "serving/call_table.h"
#include "serving/flight_table.h"
#include "serving/inference_service.h"
#include "serving/serving_models.h"
#include "serving/unsent_texts.h"

namespace muster {

/// The service as it is: calls come in by `embed` and `rerank`, texts go to the fleet, rows come
/// back by `on_row`, and a call whose last row is there is answered.
///
/// Threads: the loop's; models are opened on a thread of their own, and long texts are encoded on
/// another. Both read nothing that changes, and hand over what they have made by a posted task.
class ServingLoop final : public InferenceService {
 public:
  static constexpr std::size_t kJobsMost = 16;  // models that may wait to be opened
  /// Calls whose long text may wait to be encoded aside, one text each.
  static constexpr std::size_t kAsidesMost = 1024;

  ServingLoop(const ServeOptions& options, EventLoop& loop, Events events, const Clock& clock);
  ~ServingLoop() override;

  /// Opens cache, workers and models; see InferenceService::start.
  Status open();

  void expect_call() override;
  CallId embed(EmbedCall asked,
               std::function<void(std::variant<EmbedAnswer, CallError>)> on_done) override;
  CallId rerank(RerankCall asked,
                std::function<void(std::variant<RerankAnswer, CallError>)> on_done) override;
  void cancel(CallId id) override;
  CallId tokenize(TokenizeCall asked,
                  std::function<void(std::variant<TokenizeAnswer, CallError>)> on_done) override;

  std::optional<CallerUsage> usage_of(const std::string& caller) const override {
    return admission_.usage_of(caller, clock_.now());
  }
  std::vector<ServedModelStatus> models() const override;
  std::uint32_t row_size(std::string_view model) const override;
  void load_model(const ServedModel& model,
                  std::function<void(Result<ServedModelStatus>)> on_done) override;
  Status unload_model(const std::string& name) override;
  ModelRoster& roster() override { return roster_; }

  FleetView fleet() const override { return fleet_->view(); }
  FleetAdmin& fleet_admin() override { return fleet_->admin(); }
  void set_readings(std::size_t device, const DispatchDevice& readings) override {
    fleet_->placement().set_readings(device, readings);
  }
  ServiceStatus status() const override;
  void clear_cache() override {
    if (cache_) cache_->clear();
  }
  std::optional<Error> tend_cache() override;
  void reconfigure(const ServeOptions& options,
                   std::map<std::string, CallerLimits> limits) override;
  bool is_ready() const override;
  void drain(std::function<void()> on_done) override;

 private:
  using OnLoaded = std::function<void(Result<ServedModelStatus>)>;
  /// A model that was asked for while the server runs, until it can be used.
  struct Loading {
    ServedModel asked;
    OnLoaded on_done;
    ModelRoster::Ticket ticket = {};          // until it is placed
    std::unique_ptr<ServingModel> read = {};  // waits for its workers to have greeted
    std::set<std::size_t> died_on = {};       // devices where workers that measured it ended
    std::string why_died = {};                // how the last of them did
  };
  /// What the thread that settles a precision is told.
  struct Settling {
    std::optional<std::size_t> device = {};  // that is measured
    std::string why_none = {};               // where none can be
    std::shared_ptr<std::atomic<bool>> is_unwanted = std::make_shared<std::atomic<bool>>(false);
  };
  /// Of a model none of whose devices works.
  struct IdleModel {
    CallError error;                // what its calls are told
    bool waits_for_memory = false;  // one of them only waits for memory: calls are held for it
  };

  // Calls: serving_calls.cpp
  std::unique_ptr<Call> begin_call(const CallOptions& asked, const ServingModel& model,
                                   std::size_t text_count);
  CacheKey scope_of(const Call& call, ServingModel& model) const;
  void look_up(Call& call, ServingModel& model);
  CallId let_in(std::unique_ptr<Call> begun, ServingModel& model);
  QueueState queue_state(const Call& call, const ServingModel& model) const;
  double interactive_tokens_most(const ServingModel& model) const;
  void finish(CallId id);
  void answer(Call& call, const ServingModel& model);
  void fail(CallId id, const CallError& failure);
  static void tell(Call& call, const CallError& failure);
  static CallError no_device(const ServingModel& model, const std::vector<GroupStatus>& devices);
  void leave_flights(const Call& call);
  std::uint64_t computed_tokens(const Call& call) const;
  void expire();

  // Texts of calls on their way to the fleet and back: serving_texts.cpp
  std::uint64_t estimate_tokens(const Call& call, ServingModel& model);
  void sample_tokens(const Call& call, ServingModel& model);
  void queue_texts(Call& call);
  UnsentTexts& unsent_of(const Call& call);
  Call* next_unsent(std::size_t first_queue = 0);
  void send_texts();
  void send_in_turn(Call& call);
  void send_next(Call& call);
  void decode_next(Call& call, ServingModel& model);
  void join_flight(Call& call, const CallMiss& miss);
  void encode_aside(Call& call, ServingModel& model, TextToEncode text);
  void decode_aside(Call& call, ServingModel& model, std::vector<TokenId> ids);
  void do_aside(const Call& call, const std::function<void()>& job);
  void on_decoded(CallId id, std::string text);
  void go_on(CallId id);
  void on_encoded(CallId id, EncodedText encoded);
  void accept(Call& call, ServingModel& model, EncodedText encoded);
  void submit(Call& call, const CallMiss& miss, EncodedText encoded);
  void count_sent(Call& call);
  void forget_unsent(const Call& call);
  void on_row(ItemKey item, std::span<const std::byte> row, std::size_t device);
  void on_wrong_canary(std::size_t device);
  void cache_row(const Flight& flight, const ServingModel& model, std::size_t device);
  void on_item_failed(ItemKey item, const Error& error);
  void fail_all(const Flight& flight, const Error& error);

  // The fleet, and beginning and end: serving_loop.cpp
  FleetEvents fleet_events();
  void pump();
  void place_soon();
  void on_call_end(ModelId model);
  void finish_drain();
  void notice(std::string_view text, std::optional<std::size_t> device = std::nullopt) const;

  // Models: serving_model_loading.cpp
  std::vector<std::size_t> idle_devices() const;
  Status open_first_models();
  Result<std::unique_ptr<ServingModel>> read_model(const ServedModel& asked) const;
  Status settle(ServingModel& model, const std::vector<std::string>& classes,
                const PrecisionQuestion& question, const MeasurePrecisions& measure,
                const std::function<void(const std::string&)>& on_notice) const;
  PrecisionQuestion question_of(const ServedModel& model, const std::vector<GroupStatus>& devices,
                                std::optional<std::size_t> measured) const;
  std::optional<std::size_t> device_to_measure(const ServedModel& model,
                                               const std::vector<GroupStatus>& devices,
                                               const std::set<std::size_t>& died_on) const;
  Result<MeasuredPrecisions> measure_aside(const Probe& probe, const Settling& settling) const;
  Status place(std::unique_ptr<ServingModel> model);
  Result<std::vector<std::size_t>> devices_of(const ServedModel& model) const;
  bool do_beside(ModelId id, const std::function<void()>& job);
  void on_read(ModelId id, Result<std::unique_ptr<ServingModel>> read);
  bool is_candidate(const ServedModel& model, const std::vector<GroupStatus>& devices,
                    std::size_t device, const std::set<std::size_t>& died_on) const;
  bool is_device_known(const ServedModel& model, const std::vector<GroupStatus>& devices,
                       const std::set<std::size_t>& died_on) const;
  bool has_candidate(const Loading& loading, const std::vector<GroupStatus>& devices) const;
  void settle_read_models(const std::vector<GroupStatus>& devices);
  void settle_beside(ModelId id, const std::vector<GroupStatus>& devices);
  void on_settled(ModelId id, std::unique_ptr<ServingModel> model, const Status& settled);
  void place_opened(ModelId id, std::unique_ptr<ServingModel> opened);
  void end_loads();
  void fail_loading(ModelId id, const Error& error);
  std::vector<std::string> engine_classes(const std::vector<std::string>& devices) const;
  void on_fleet_change();
  void note_classes(const std::vector<GroupStatus>& devices);
  void note_idle_models(const std::vector<GroupStatus>& devices);
  void refuse_idle_calls();
  TimePoint held_until(const Call& call) const;
  void hold(const Call& call);
  void keep_canaries(const ServingModel& model);
  ServedModelStatus status_of(const ServingModel& model,
                              const std::vector<GroupStatus>& devices) const;

  ServeOptions options_;
  EventLoop& loop_;
  const Events events_;
  const Clock& clock_;
  std::unique_ptr<VectorCache> cache_;
  Admission admission_;
  ModelRoster roster_;  // outlives the tickets of all models
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<EventLoop::Watch> fleet_watch_;
  std::unique_ptr<EventLoop::Timer> fleet_timer_;
  std::unique_ptr<EventLoop::Timer> deadline_timer_;
  std::unique_ptr<EventLoop::Timer> drain_timer_;
  std::unique_ptr<EventLoop::Timer> hold_timer_;
  // Else a worker that polls would take this thread's core.
  const bool has_spare_core_ = std::thread::hardware_concurrency() > 1;
  bool was_computed_ = false;  // the last call, at least in part
  bool is_placing_posted_ = false;
  bool is_broken_ = false;

  ServingModels models_;
  ModelId next_model_ = 1;
  std::map<ModelId, Loading> loading_;  // asked for while running
  std::optional<Settling> settling_;    // of one of them, under way
  std::set<ModelId> kept_canaries_;
  std::set<std::size_t> cached_devices_;  // rows of theirs were cached since it was emptied
  std::map<ModelId, IdleModel> idle_models_;
  bool is_any_ending_ = false;             // a device drains: what it gives back may be done yet
  std::optional<TimePoint> next_refusal_;  // of a call that is held
  CallTable calls_;
  FlightTable flights_;
  /// Let in, and not all of their texts sent yet: interactive ones, bulk ones, and those that ask
  /// for tokens alone, which wait for no device and count as no work.
  std::array<UnsentTexts, kLaneCount + 1> unsent_;
  bool is_sending_ = false;
  bool is_sending_posted_ = false;
  std::vector<std::string> device_classes_;  // engine classes, by device
  std::vector<float> row_buffer_;
  ServiceStatus counts_;
  std::function<void()> on_drained_;

  std::atomic<bool> is_ending_ = false;
  Inbox<std::function<void()>> jobs_{kJobsMost};
  std::jthread reader_;  // opens models
  Inbox<std::function<void()>> asides_{kAsidesMost};
  std::jthread encoder_;  // encodes long texts; started by the first of them
};

}  // namespace muster
