// A run on the devices of this machine, behind the interface that a server has too. `submit`
// tokenizes here, in the run's own process, so token counts are known at once; rows come back in
// `step`, in the order in which batches end.

#include <utility>

#include "jobs/embed_backend.h"
#include "jobs/embedding_session.h"
#include "spec/pooling.h"

namespace muster {
namespace {

// All but what the devices settle.
EmbedModel describe(const OpenedModel& opened) {
  return {.path = std::filesystem::absolute(opened.folder.path).lexically_normal().string(),
          .server = {},
          .hash = opened.hash,
          .pooling = std::string(pooling_name(opened.pooling)),
          .normalize = opened.normalize,
          .prompt_name = opened.prompt_name,
          .length_max = opened.text_encoder->length_max(),
          .precision = Precision::Fp32,
          .precision_reason = {},
          .equality_class = {}};
}

class LocalBackend final : public EmbedBackend {
 public:
  explicit LocalBackend(EmbeddingSession session) : session_(std::move(session)) {
    model_ = describe(session_.model);
    model_.precision = session_.precision;
    model_.precision_reason = session_.precision_reason;
    model_.equality_class = session_.equality_class;
  }

  const EmbedModel& model() const override { return model_; }

  std::optional<Tokenizer::Encoded> submit(ItemKey key, const std::string& text) override {
    std::vector<TokenId> ids;
    const auto encoded = session_.model.text_encoder->encode(text, ids);
    session_.fleet->texts().submit(
        {.item = {.key = key, .model = kSessionModel, .token_count = encoded.token_count},
         .ids = std::move(ids)});
    return encoded;
  }

  Status step(Duration timeout) override { return session_.fleet->loop().step(timeout); }

  EmbedBackendStatus status() const override {
    EmbedBackendStatus status{.devices = {},
                              .ready_at = session_.fleet->models().first_ready_at(),
                              .dim = session_.fleet->models().dim(kSessionModel)};
    for (const auto& device : session_.fleet->groups()) {
      const auto model = device.models.find(kSessionModel);
      const auto here = model == device.models.end() ? GroupModelStatus{} : model->second;
      status.devices.push_back({.name = device.name,
                                .text_count = device.text_count,
                                .token_count = device.token_count,
                                .busy_seconds = device.engine_seconds,
                                .ready_seconds = device.ready_seconds,
                                .restart_count = device.restart_count,
                                .weights_bytes = here.weights_bytes,
                                .load_peak_bytes = here.load_peak_bytes,
                                .activation_peak_bytes = device.activation_peak_bytes,
                                .state = std::string(group_state_name(device.state)),
                                .reason = device.reason});
    }
    return status;
  }

  std::optional<double> stop() override { return session_.fleet->loop().stop(); }

 private:
  EmbeddingSession session_;
  EmbedModel model_;
};

}  // namespace

Result<EmbedModel> describe_local_model(const EmbedOptions& options) {
  const auto choice = model_choice(options);
  auto opened = MUSTER_TRY(find_and_read(choice));
  MUSTER_TRY(open_texts(choice, opened));
  auto model = describe(opened);
  model.precision = options.precision.value_or(model.precision);
  return model;
}

Result<std::unique_ptr<EmbedBackend>> open_local_backend(const EmbedOptions& options,
                                                         EmbedBackendEvents events,
                                                         const Clock& clock,
                                                         const std::function<bool()>& cancelled) {
  const auto on_phase = events.on_phase;
  FleetEvents heard{
      .on_row = [tell = std::move(events.on_row)](ItemKey key, std::span<const std::byte> row,
                                                  std::size_t) { tell(key, row); },
      .on_item_failed = std::move(events.on_item_failed),
      .on_notice = [tell = std::move(events.on_notice)](
                       const std::string& notice, std::optional<std::size_t>) { tell(notice); },
      .on_change = {}};
  auto session = MUSTER_TRY(open_session(options, std::move(heard), clock, cancelled, on_phase));
  return std::unique_ptr<EmbedBackend>(std::make_unique<LocalBackend>(std::move(session)));
}

}  // namespace muster
