// A run on a server. Each connection has a thread that waits for answers, so that the run's loop
// never blocks on the network; the two sides share one `Exchange` under one mutex, and callbacks of
// the run are called by its loop alone. Requests are filled up to a size; a smaller one goes out
// only when a thread would have nothing to do. The first error that trying again does not mend ends
// the run.

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "client/server_caller.h"
#include "jobs/embed_backend.h"
#include "jobs/model_opening.h"
#include "jobs/remote_model.h"

namespace muster {
namespace {

// A request is large enough that what it costs beside its texts does not count, and small enough
// that a server cuts good batches from several, and that little is asked again when one is lost.
constexpr std::size_t kTextsMost = 64;
constexpr std::size_t kTextBytesMost = 64 << 10;

constexpr Duration kCancelCheck = std::chrono::milliseconds(100);  // how soon Ctrl-C is seen

using Request = std::vector<RemoteText>;

// What the threads and the run's loop hand to each other.
struct Exchange {
  Mutex mutex;
  std::condition_variable_any for_threads;
  std::condition_variable_any for_loop;
  bool is_over MUSTER_GUARDED_BY(mutex) = false;
  std::deque<Request> waiting MUSTER_GUARDED_BY(mutex);
  std::size_t under_way MUSTER_GUARDED_BY(mutex) = 0;  // requests with a thread
  std::vector<RemoteResult> results MUSTER_GUARDED_BY(mutex);
  std::vector<std::string> notices MUSTER_GUARDED_BY(mutex);
  std::optional<Error> fatal MUSTER_GUARDED_BY(mutex);
  bool is_in_trouble MUSTER_GUARDED_BY(mutex) = false;
  std::uint32_t trouble_count MUSTER_GUARDED_BY(mutex) = 0;
};

class RemoteBackend final : public EmbedBackend {
 public:
  RemoteBackend(EmbedBackendEvents events, const Clock& clock, std::string address)
      : events_(std::move(events)), clock_(clock), address_(std::move(address)) {}
  ~RemoteBackend() override { end_threads(); }
  RemoteBackend(const RemoteBackend&) = delete;
  RemoteBackend& operator=(const RemoteBackend&) = delete;

  /// Waits for the model, and starts the threads.
  Status open(const EmbedOptions& options, const std::function<bool()>& cancelled);

  const EmbedModel& model() const override { return model_; }
  std::uint32_t dim() const override { return listed_.dim; }
  void submit(const WindowRecord& record) override;
  Status step(Duration timeout) override;
  CorpusBackendStatus status() const override;
  std::optional<double> stop() override {
    end_threads();
    return std::nullopt;
  }

 private:
  ServerCallerHooks hooks(std::function<bool(Duration)> wait);
  void run_thread(ServerCaller caller);
  void tell_notices();
  void send_open_request();
  void deliver(RemoteResult& result);
  void end_threads();

  const EmbedBackendEvents events_;
  const Clock& clock_;
  const std::string address_;
  ListedModel listed_;
  EmbedModel model_;
  StopSignal stop_;
  mutable Exchange exchange_;
  std::vector<std::jthread> threads_;

  // Of the run's loop alone.
  Request open_request_;  // texts that are not yet a whole request
  std::size_t open_size_ = 0;
  std::optional<TimePoint> ready_at_;
  std::uint64_t text_count_ = 0;
  std::uint64_t token_count_ = 0;
};

Status RemoteBackend::open(const EmbedOptions& options, const std::function<bool()>& cancelled) {
  const auto& server = *options.server;
  auto access = server.access;
  access.http.cancel_fd = stop_.fd();
  const auto wait = [&](Duration duration) {
    tell_notices();
    for (auto left = duration; left > Duration{}; left -= kCancelCheck) {
      if (cancelled() || !stop_.wait(std::min(left, kCancelCheck))) return false;
    }
    return !cancelled();
  };
  // This caller runs on the run's own thread, so it may call the run's callbacks while it waits;
  // those of the threads may not.
  auto asking = MUSTER_TRY(ServerCaller::open(access, server.first_wait, hooks(wait)));
  listed_ = MUSTER_TRY(asking.wait_for_model(options.model));
  if (!listed_.embeds) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{} of {} ranks texts and gives no vectors", listed_.name, address_)};
  }
  model_ = MUSTER_TRY(remote_embed_model(listed_, options.prompt_name, access.url));
  ready_at_ = clock_.now();
  for (std::size_t i = 0; i < server.connection_count; ++i) {
    const auto wait_in_thread = [this](Duration duration) { return stop_.wait(duration); };
    auto caller = MUSTER_TRY(ServerCaller::open(access, server.first_wait, hooks(wait_in_thread)));
    threads_.emplace_back(
        [this, caller = std::move(caller)]() mutable { run_thread(std::move(caller)); });
  }
  return Done{};
}

ServerCallerHooks RemoteBackend::hooks(std::function<bool(Duration)> wait) {
  return {.wait = std::move(wait),
          .on_trouble =
              [this](const Error& error) {
                const MutexLock lock(exchange_.mutex);
                if (std::exchange(exchange_.is_in_trouble, true)) return;
                ++exchange_.trouble_count;
                exchange_.notices.push_back(fmt::format("{}; trying again", error.message));
                exchange_.for_loop.notify_one();
              },
          .on_well =
              [this] {
                const MutexLock lock(exchange_.mutex);
                if (!std::exchange(exchange_.is_in_trouble, false)) return;
                exchange_.notices.push_back(fmt::format("{} answers again", address_));
                exchange_.for_loop.notify_one();
              }};
}

void RemoteBackend::tell_notices() {
  std::vector<std::string> notices;
  {
    const MutexLock lock(exchange_.mutex);
    notices.swap(exchange_.notices);
  }
  for (const auto& notice : notices) events_.on_notice(notice);
}

void RemoteBackend::run_thread(ServerCaller caller) {
  for (;;) {
    Request request;
    {
      const MutexLock lock(exchange_.mutex);
      while (!exchange_.is_over && exchange_.waiting.empty()) {
        exchange_.for_threads.wait(exchange_.mutex);
      }
      if (exchange_.is_over) return;
      request = std::move(exchange_.waiting.front());
      exchange_.waiting.pop_front();
      ++exchange_.under_way;
    }
    // Computed without the lock: this is where a thread spends its time.
    auto results = caller.compute(listed_, model_.prompt_name, request);
    const MutexLock lock(exchange_.mutex);
    --exchange_.under_way;
    if (results) {
      std::move(results->begin(), results->end(), std::back_inserter(exchange_.results));
    } else {
      if (!exchange_.fatal) exchange_.fatal = results.error();
      exchange_.is_over = true;
      exchange_.for_threads.notify_all();
    }
    exchange_.for_loop.notify_one();
  }
}

void RemoteBackend::submit(const WindowRecord& record) {
  const auto& text = record.entry.text;
  if (open_size_ + text.size() > kTextBytesMost) send_open_request();
  open_request_.push_back({.key = record.key, .text = text});
  open_size_ += text.size();
  if (open_request_.size() == kTextsMost) send_open_request();
}

void RemoteBackend::send_open_request() {
  if (open_request_.empty()) return;
  {
    const MutexLock lock(exchange_.mutex);
    exchange_.waiting.push_back(std::exchange(open_request_, {}));
  }
  open_size_ = 0;
  exchange_.for_threads.notify_one();
}

Status RemoteBackend::step(Duration timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  bool is_hungry = false;
  {
    const MutexLock lock(exchange_.mutex);
    is_hungry = exchange_.waiting.empty() && exchange_.under_way < threads_.size();
  }
  // While others are under way, more texts may come that make it a whole one.
  if (is_hungry) send_open_request();
  std::vector<RemoteResult> results;
  std::optional<Error> fatal;
  {
    const MutexLock lock(exchange_.mutex);
    while (exchange_.results.empty() && exchange_.notices.empty() && !exchange_.fatal) {
      if (exchange_.for_loop.wait_until(exchange_.mutex, until) == std::cv_status::timeout) break;
    }
    results.swap(exchange_.results);
    fatal = exchange_.fatal;
  }
  tell_notices();
  for (auto& result : results) deliver(result);
  if (fatal) return *fatal;
  return Done{};
}

void RemoteBackend::deliver(RemoteResult& result) {
  if (result.failure) return events_.on_item_failed(result.key, *result.failure);
  ++text_count_;
  token_count_ += result.tokens.token_count;
  events_.on_tokens(result.key, result.tokens);
  events_.on_row(result.key, std::as_bytes(std::span(result.row)));
}

CorpusBackendStatus RemoteBackend::status() const {
  DeviceProgress server;
  server.name = address_;
  server.text_count = text_count_;
  server.token_count = token_count_;
  server.ready_seconds = ready_at_ ? seconds(clock_.now() - *ready_at_) : 0;
  const MutexLock lock(exchange_.mutex);
  server.restart_count = exchange_.trouble_count;
  server.state = exchange_.is_in_trouble ? "unavailable" : "ready";
  return {.devices = {std::move(server)}, .ready_at = ready_at_};
}

void RemoteBackend::end_threads() {
  {
    const MutexLock lock(exchange_.mutex);
    exchange_.is_over = true;
  }
  // First the flag, then the signal: a thread that wakes must see that it is over.
  stop_.raise();
  exchange_.for_threads.notify_all();
  threads_.clear();
}

}  // namespace

Result<std::unique_ptr<EmbedBackend>> open_remote_backend(const EmbedOptions& options,
                                                          EmbedBackendEvents events,
                                                          const Clock& clock,
                                                          const std::function<bool()>& cancelled) {
  const auto address = MUSTER_TRY(parse_http_url(options.server->access.url)).address();
  if (events.on_phase) events.on_phase("waiting for the server");
  auto backend = std::make_unique<RemoteBackend>(std::move(events), clock, address);
  MUSTER_TRY(backend->open(options, cancelled));
  return std::unique_ptr<EmbedBackend>(std::move(backend));
}

}  // namespace muster
