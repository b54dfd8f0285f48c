// A trial as callbacks of one event loop. A timer opens arrivals at their intended times; every
// other callback looks for due arrivals too, so that a burst of answers does not make the next
// request late. A second timer beats every 10 ms: it enforces time limits, and how late it is
// served shows how late everything else is, also where no request has an intended time (closed
// loop).
#include "bench/load/load_generator.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/cpu_time.h"
#include "bench/load/load_client.h"
#include "bench/load/sample_recorder.h"

namespace muster {
namespace {

constexpr auto kTick = std::chrono::milliseconds(10);
// A server that refuses connections is not asked a thousand times a second.
constexpr double kReconnectSeconds = 0.1;
// Of an open loop: so that the first requests need not pay for connecting.
constexpr std::uint32_t kOpenAtStart = 16;
constexpr std::size_t kSentAtOnce = 64;

/// A request without a connection.
struct Waiting {
  double intended = 0;
  double late = 0;  // that this program came to it
};

class Trial final : public LoadClientOwner {
 public:
  Trial(const HttpClientTarget& target, std::span<const std::string> requests,
        const AnswerReaderMaker& make_reader, const LoadOptions& options)
      : target_(target),
        requests_(requests),
        make_reader_(make_reader),
        options_(options),
        requests_most_(std::min(options.requests_most, kSamplesMost)),
        recorder_(options.keeps_text) {
    if (options.arrivals) schedule_.emplace(*options.arrivals, options.seed);
  }

  Result<TrialSamples> run();

 private:
  double now() const override { return seconds(std::chrono::steady_clock::now() - begin_); }
  void catch_up() override;
  void on_connected() override;
  void keep(EndedRequest ended) override;
  void on_free(std::size_t place) override;
  void on_closed(std::size_t place, const std::optional<Error>& error, bool was_connected) override;

  bool is_closed_loop() const { return !schedule_.has_value(); }
  bool is_sending(double at) const {
    return at < options_.seconds && planned_ < requests_most_ && !is_cancelled_;
  }
  Status open_client();
  void begin_sending();
  void plan_next();
  void send_next();
  std::optional<std::size_t> free_place();
  void start(std::size_t place, double intended, double ready);
  void start_waiting(std::size_t place, double at);
  void ask_again(std::size_t place);
  void tick();
  void enforce_limits(double at);
  void reopen_closed(double at);
  bool is_over(double at) const;
  double sent_until() const;
  void end();

  const HttpClientTarget& target_;
  const std::span<const std::string> requests_;
  const AnswerReaderMaker& make_reader_;
  const LoadOptions& options_;
  const std::uint64_t requests_most_;
  std::optional<ArrivalSchedule> schedule_;

  EventLoop loop_;
  std::unique_ptr<EventLoop::Timer> arrival_timer_;
  std::unique_ptr<EventLoop::Timer> tick_timer_;
  TimePoint begin_{};
  TimePoint next_tick_{};
  std::vector<std::unique_ptr<LoadClient>> clients_;
  std::deque<std::size_t> free_;  // connections that wait for a request, longest first
  std::deque<Waiting> waiting_;
  std::map<std::size_t, double> closed_at_;  // connections to open again
  std::optional<double> next_arrival_;
  std::optional<double> armed_for_;  // what the timer of arrivals is set to
  double last_intended_ = 0;
  double last_end_ = 0;        // of the requests that have ended
  bool is_exhausted_ = false;  // the schedule, before the time for sending was over
  std::size_t connected_ = 0;  // before the start
  std::uint64_t planned_ = 0;  // requests that have their intended time
  std::size_t next_request_ = 0;
  std::size_t busy_ = 0;
  double cpu_at_begin_ = 0;
  bool is_begun_ = false;
  bool is_cancelled_ = false;
  std::optional<Error> first_failure_;
  SampleRecorder recorder_;
  TrialSamples counted_;  // all but the samples
};

Status Trial::open_client() {
  const auto place = clients_.size();
  clients_.push_back(std::make_unique<LoadClient>(*this, place, make_reader_()));
  auto opened = clients_.back()->open(loop_, target_);
  if (opened) {
    ++counted_.connections_opened;
  } else {
    clients_.pop_back();  // else its place would be taken for good by nothing
  }
  return opened;
}

Result<TrialSamples> Trial::run() {
  MUSTER_CHECK(!requests_.empty());
  arrival_timer_ = loop_.timer(
      [this] {
        armed_for_.reset();
        catch_up();
      },
      EventLoop::Wait::Polling);
  tick_timer_ = loop_.timer([this] { tick(); });
  begin_ = std::chrono::steady_clock::now();
  // The clock of the trial begins when the connections of the start are there.
  const auto at_start =
      is_closed_loop() ? options_.clients : std::min(options_.connections_most, kOpenAtStart);
  for (std::uint32_t i = 0; i < at_start; ++i) MUSTER_TRY(open_client());
  tick_timer_->set(begin_ + kTick);
  loop_.run();
  if (first_failure_) return *first_failure_;
  if (is_cancelled_) return Error{ErrorKind::Cancelled, "cancelled"};
  return recorder_.finish(counted_);
}

void Trial::on_connected() {
  if (is_begun_ || ++connected_ < clients_.size()) return;
  begin_sending();
}

void Trial::begin_sending() {
  is_begun_ = true;
  cpu_at_begin_ = process_cpu_seconds();
  begin_ = std::chrono::steady_clock::now();
  next_tick_ = begin_ + kTick;
  tick_timer_->set(next_tick_);
  for (std::size_t place = 0; place < clients_.size(); ++place) {
    if (is_closed_loop()) {
      ask_again(place);
    } else {
      free_.push_back(place);
    }
  }
  if (is_closed_loop()) return;
  plan_next();
  catch_up();
}

void Trial::plan_next() {
  next_arrival_.reset();
  const auto at = planned_ < requests_most_ ? schedule_->next() : std::nullopt;
  if (at && seconds(*at) < options_.seconds) next_arrival_ = seconds(*at);
  is_exhausted_ = !at;
}

// Sends what is due; called by the timer and by every callback.
void Trial::catch_up() {
  if (!next_arrival_ || !is_begun_) return;
  for (std::size_t sent = 0; *next_arrival_ <= now(); ++sent) {
    // A generator that cannot keep up must read answers nevertheless.
    if (sent == kSentAtOnce) return arrival_timer_->set(std::chrono::steady_clock::now());
    send_next();
    if (!next_arrival_) return;
  }
  if (armed_for_ == next_arrival_) return;
  armed_for_ = next_arrival_;
  arrival_timer_->set(
      begin_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*next_arrival_)));
}

void Trial::send_next() {
  const double intended = *next_arrival_;
  ++planned_;
  last_intended_ = intended;
  plan_next();
  if (const auto place = free_place()) {
    start(*place, intended, intended);
  } else {
    waiting_.push_back({.intended = intended, .late = std::max(0.0, now() - intended)});
  }
}

// A free connection, else a further one as long as there may be more.
std::optional<std::size_t> Trial::free_place() {
  if (!free_.empty()) {
    const auto place = free_.front();
    free_.pop_front();
    return place;
  }
  if (!closed_at_.empty()) {
    const auto place = closed_at_.begin()->first;
    if (!clients_[place]->open(loop_, target_)) return std::nullopt;
    closed_at_.erase(place);
    ++counted_.connections_opened;
    return place;
  }
  if (clients_.size() < options_.connections_most && open_client()) return clients_.size() - 1;
  return std::nullopt;
}

void Trial::start(std::size_t place, double intended, double ready) {
  const auto request = next_request_;
  next_request_ = (next_request_ + 1) % requests_.size();
  ++busy_;
  counted_.connections_most =
      std::max(counted_.connections_most, static_cast<std::uint32_t>(busy_));
  clients_[place]->begin(
      {.intended = intended, .ready = ready, .request = static_cast<std::uint32_t>(request)},
      requests_[request]);
}

// What this program was late itself is no wait for a connection: in time, the request would have
// been as much further ahead.
void Trial::start_waiting(std::size_t place, double at) {
  const auto waiting = waiting_.front();
  waiting_.pop_front();
  start(place, waiting.intended, std::max(waiting.intended, at - waiting.late));
}

// Closed loop: the next request is meant to be sent now.
void Trial::ask_again(std::size_t place) {
  const double at = now();
  if (!is_sending(at)) {
    free_.push_back(place);
    return;
  }
  ++planned_;
  start(place, at, at);
}

void Trial::on_free(std::size_t place) {
  if (is_closed_loop()) {
    ask_again(place);
  } else if (!waiting_.empty()) {
    start_waiting(place, now());
  } else {
    free_.push_back(place);
  }
  catch_up();
  if (is_begun_ && is_over(now())) end();
}

void Trial::on_closed(std::size_t place, const std::optional<Error>& error, bool was_connected) {
  if (!is_begun_) {
    first_failure_ = error;
    loop_.stop();
    return;
  }
  std::erase(free_, place);
  // A refused connection is tried again after a pause, one that the server has closed at once.
  closed_at_[place] = was_connected ? now() - kReconnectSeconds : now();
  if (was_connected) reopen_closed(now());
}

void Trial::reopen_closed(double at) {
  const bool is_needed = is_closed_loop() ? is_sending(at) : !waiting_.empty();
  if (!is_needed) return;
  for (auto one = closed_at_.begin(); one != closed_at_.end();) {
    const auto [place, since] = *one;
    if (at - since < kReconnectSeconds || !clients_[place]->open(loop_, target_)) {
      ++one;
      continue;
    }
    one = closed_at_.erase(one);
    ++counted_.connections_opened;
    if (is_closed_loop()) {
      ask_again(place);
    } else if (!waiting_.empty()) {
      start_waiting(place, at);
    } else {
      free_.push_back(place);
    }
  }
}

void Trial::keep(EndedRequest ended) {
  --busy_;
  last_end_ = std::max(last_end_, ended.sample.end);
  recorder_.add(std::move(ended));
}

void Trial::tick() {
  const auto at_time = std::chrono::steady_clock::now();
  if (is_begun_) recorder_.add_tick(seconds(at_time - next_tick_));
  // After a stall the missed beats are left out: one late beat is what happened.
  next_tick_ = std::max(next_tick_ + kTick, at_time);
  tick_timer_->set(next_tick_);
  is_cancelled_ = is_cancelled_ || options_.is_cancelled();
  const double at = now();
  if (!is_begun_) {
    if (at > options_.answer_limit_seconds) {
      first_failure_ =
          Error{ErrorKind::DeadlineExceeded, target_.url.address() + ": cannot connect in time"};
    }
    if (is_cancelled_ || first_failure_) loop_.stop();
    return;
  }
  enforce_limits(at);
  reopen_closed(at);
  catch_up();
  if (is_over(at)) end();
}

void Trial::enforce_limits(double at) {
  for (std::size_t place = 0; place < clients_.size(); ++place) {
    auto& client = *clients_[place];
    const bool is_late = at - client.sample().started >= options_.answer_limit_seconds;
    if (!client.is_busy() || (!is_late && !client.is_overfull())) continue;
    client.give_up(SampleEnd::TimedOut);
    closed_at_[place] = at - kReconnectSeconds;
  }
}

bool Trial::is_over(double at) const {
  if (is_cancelled_) return true;
  const bool has_more = is_closed_loop() ? is_sending(at) : next_arrival_.has_value();
  if (has_more) return false;
  return (busy_ == 0 && waiting_.empty()) || at > options_.seconds + options_.answer_limit_seconds;
}

// A closed loop is busy to its end, which by count is its last answer and not the next tick; a
// schedule that ended sooner than the time for it counts to its last request.
double Trial::sent_until() const {
  if (is_closed_loop()) return planned_ == requests_most_ ? last_end_ : options_.seconds;
  return is_exhausted_ ? last_intended_ : options_.seconds;
}

void Trial::end() {
  const double at = now();
  for (auto& client : clients_) {
    if (client->is_busy()) client->give_up(SampleEnd::TimedOut);
  }
  for (const auto& waiting : waiting_) recorder_.add_unsent(waiting.intended, at);
  counted_.sending_seconds = std::min(sent_until(), options_.seconds);
  counted_.own_cpu_seconds = process_cpu_seconds() - cpu_at_begin_;
  loop_.stop();
}

}  // namespace

Result<TrialSamples> run_load(const HttpClientTarget& target, std::span<const std::string> requests,
                              const AnswerReaderMaker& make_reader, const LoadOptions& options) {
  Trial trial(target, requests, make_reader, options);
  return trial.run();
}

}  // namespace muster
