// A run on the devices of this machine, behind the interface that a server has too. Texts become
// ids on threads beside the loop, since one thread feeds two or three fast GPUs at most; what is
// tokenised goes to the fleet in the order of the input. Rows come back in the order in which
// batches end.

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "jobs/embed_backend.h"
#include "jobs/embedding_session.h"
#include "jobs/encode_pool.h"
#include "spec/pooling.h"

namespace muster {
namespace {

constexpr std::size_t kTokenizeThreadsMost = 16;
// At what drivers report: before a new worker, which takes longer to start, computes there again.
constexpr Duration kLookPeriod = std::chrono::milliseconds(100);
constexpr Duration kEncodeWait = std::chrono::milliseconds(10);  // a chunk takes about one

// The cores that this process may use: a container or taskset may leave it few of those there are.
std::size_t tokenize_threads_most() {
  cpu_set_t allowed;
  const auto count = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
                         ? static_cast<std::size_t>(CPU_COUNT(&allowed))
                         : std::thread::hardware_concurrency();
  return std::clamp<std::size_t>(count, 1, kTokenizeThreadsMost);
}

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
  LocalBackend(EmbeddingSession session,
               std::function<void(ItemKey, const Tokenizer::Encoded&)> on_tokens,
               std::function<void(const std::string&)> on_notice,
               std::function<DeviceNews()> device_news, const Clock& clock)
      : session_(std::move(session)),
        on_tokens_(std::move(on_tokens)),
        on_notice_(std::move(on_notice)),
        device_news_(std::move(device_news)),
        clock_(clock),
        pool_(*session_.model.text_encoder, tokenize_threads_most()) {
    model_ = describe(session_.model);
    model_.precision = session_.precision;
    model_.precision_reason = session_.precision_reason;
    model_.equality_class = session_.equality_class;
    model_.measuring_seconds = session_.measuring_seconds;
  }

  const EmbedModel& model() const override { return model_; }

  std::uint32_t dim() const override { return session_.fleet->models().dim(kSessionModel); }

  void submit(const WindowRecord& record) override { pool_.give(record.key, record.entry.text); }

  Status step(Duration timeout) override {
    pool_.flush();
    look_for_faults();
    // Where devices have nothing at all, these texts go first: the next record may be long in
    // coming.
    const bool is_idle = session_.fleet->texts().pending_count() == 0 && pool_.pending_count() > 0;
    if (!take_encoded() && (timeout > Duration{0} || is_idle)) {
      wait(std::max(timeout, is_idle ? kEncodeWait : Duration{0}));
      take_encoded();
    }
    MUSTER_TRY(session_.fleet->loop().step(Duration{0}));
    const bool is_starved = session_.fleet->models().first_ready_at() &&
                            session_.fleet->placement().dispatcher().queued_text_count() == 0;
    if (is_starved) pool_.grow();
    return Done{};
  }

  CorpusBackendStatus status() const override {
    CorpusBackendStatus status{.devices = {},
                               .ready_at = session_.fleet->models().first_ready_at(),
                               .tokenize_seconds = pool_.busy_seconds()};
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
  void look_for_faults() {
    if (!device_news_ || clock_.now() < next_look_) return;
    next_look_ = clock_.now() + kLookPeriod;
    const auto news = device_news_();
    if (news.notice) on_notice_(*news.notice);
    for (const auto& [device, fault] : news.faults) {
      session_.fleet->admin().set_fault(device, fault);
    }
  }

  // True where there were some: the fleet has work to place.
  bool take_encoded() {
    auto texts = pool_.take();
    for (auto& text : texts) {
      const auto token_count = static_cast<std::uint32_t>(text.ids.size());
      on_tokens_(text.key, {.token_count = token_count, .is_truncated = text.is_truncated});
      session_.fleet->texts().submit(
          {.item = {.key = text.key, .model = kSessionModel, .token_count = token_count},
           .ids = std::move(text.ids)});
    }
    return !texts.empty();
  }

  // Until a worker or the pool has something, or the fleet's time has come.
  void wait(Duration most) const {
    auto& loop = session_.fleet->loop();
    const auto until = std::min(clock_.now() + most, loop.next_deadline());
    const auto rest = std::max(until - clock_.now(), Duration{0});
    std::array<pollfd, 2> ready{pollfd{loop.wait_fd(), POLLIN, 0},
                                pollfd{pool_.ready_fd(), POLLIN, 0}};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(rest).count();
    (void)::poll(ready.data(), ready.size(), static_cast<int>(ms));
  }

  EmbeddingSession session_;
  const std::function<void(ItemKey, const Tokenizer::Encoded&)> on_tokens_;
  const std::function<void(const std::string&)> on_notice_;
  const std::function<DeviceNews()> device_news_;
  const Clock& clock_;
  TimePoint next_look_{};
  EncodePool pool_;
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
      .on_notice = [tell = events.on_notice](const std::string& notice,
                                             std::optional<std::size_t>) { tell(notice); },
      .on_change = {}};
  auto session = MUSTER_TRY(open_session(options, std::move(heard), clock, cancelled, on_phase));
  return std::unique_ptr<EmbedBackend>(
      std::make_unique<LocalBackend>(std::move(session), std::move(events.on_tokens),
                                     std::move(events.on_notice), options.device_news, clock));
}

}  // namespace muster
