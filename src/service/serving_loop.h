#pragma once

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
#include "service/call_table.h"
#include "service/flight_table.h"
#include "service/inference_service.h"
#include "service/serving_models.h"

namespace muster {

/// The service as it is: calls come in by `embed` and `rerank`, texts go to the fleet, rows come
/// back by `on_row`, and a call whose last row is there is answered.
///
/// Threads: the loop's; models are opened on a thread of its own, which reads nothing that changes.
class ServingLoop final : public InferenceService {
 public:
  static constexpr std::size_t kJobsMost = 16;  // models that may wait to be opened

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
  Result<std::vector<TokenizedText>> tokenize(const CallOptions& options,
                                              const std::optional<std::string>& prompt_name,
                                              std::span<const std::string> texts) override;

  std::vector<ServedModelStatus> models() const override;
  void load_model(const ServedModel& model,
                  std::function<void(Result<ServedModelStatus>)> on_done) override;
  Status unload_model(const std::string& name) override;

  Fleet& fleet() override { return *fleet_; }
  ServiceStatus status() const override;
  void clear_cache() override {
    if (cache_) cache_->clear();
  }
  void reconfigure(const ServeOptions& options,
                   std::map<std::string, CallerLimits> limits) override;
  bool is_ready() const override;
  void drain(std::function<void()> on_done) override;

 private:
  using OnLoaded = std::function<void(Result<ServedModelStatus>)>;
  using Measure = std::function<Result<Verdict>(const Probe&)>;

  // Calls: serving_calls.cpp
  Call& begin_call(const CallOptions& asked, ServingModel& model, std::size_t text_count);
  void look_up(Call& call, ServingModel& model);
  CallId let_in(Call& call, ServingModel& model);
  std::uint64_t token_bound(const Call& call, const ServingModel& model) const;
  QueueState queue_state(const ServingModel& model, Lane lane) const;
  void send_texts(CallId id);
  Status send_text(Call& call, ServingModel& model, const CallMiss& miss);
  Tokenizer::Encoded encode(Call& call, ServingModel& model, std::uint32_t position,
                            std::vector<std::uint32_t>& ids, std::uint32_t& first_segment);
  void on_row(ItemKey item, std::span<const std::byte> row);
  void on_item_failed(ItemKey item, const Error& error);
  void fail_all(const Flight& flight, const Error& error);
  void finish(CallId id);
  void fail(CallId id, const CallError& failure);
  void refuse(CallId id, const CallError& failure);
  static void tell(Call& call, const CallError& failure);
  void leave_flights(const Call& call);
  void expire();

  // The fleet, and beginning and end: serving_loop.cpp
  FleetEvents fleet_events();
  void pump();
  void place_soon();
  void on_call_end(ModelId model);
  void finish_drain();
  void notice(std::string_view text, std::optional<std::size_t> device = std::nullopt) const;

  // Models: serving_model_loading.cpp
  Status open_first_models();
  Result<std::unique_ptr<ServingModel>> read_model(const ServedModel& asked) const;
  Status settle(ServingModel& model, const std::vector<std::string>& classes,
                const Measure& measure,
                const std::function<void(const std::string&)>& on_notice) const;
  Result<Verdict> measure_aside(const Probe& probe) const;
  Status place(std::unique_ptr<ServingModel> model);
  void place_opened(ModelId id, Result<std::unique_ptr<ServingModel>> opened);
  std::vector<std::string> engine_classes() const;
  void on_fleet_change();
  void keep_canaries(const ServingModel& model);
  ServedModelStatus status_of(const ServingModel& model,
                              const std::vector<FleetDeviceStatus>& devices) const;

  ServeOptions options_;
  EventLoop& loop_;
  const Events events_;
  const Clock& clock_;
  std::unique_ptr<VectorCache> cache_;
  Admission admission_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<EventLoop::Watch> fleet_watch_;
  std::unique_ptr<EventLoop::Timer> fleet_timer_;
  std::unique_ptr<EventLoop::Timer> deadline_timer_;
  std::unique_ptr<EventLoop::Timer> drain_timer_;
  // Else a worker that polls would take this thread's core.
  const bool has_spare_core_ = std::thread::hardware_concurrency() > 1;
  bool was_computed_ = false;  // the last call, at least in part
  bool is_placing_posted_ = false;
  bool is_broken_ = false;

  ServingModels models_;
  ModelId next_model_ = 1;
  std::map<ModelId, OnLoaded> loading_;  // asked for while running
  std::set<ModelId> kept_canaries_;
  CallTable calls_;
  FlightTable flights_;
  std::set<CallId> unsent_;  // let in, and not all of their texts sent yet
  std::vector<float> row_buffer_;
  ServiceStatus counts_;
  std::function<void()> on_drained_;

  Inbox<std::function<void()>> jobs_{kJobsMost};
  std::thread reader_;  // opens models
};

}  // namespace muster
