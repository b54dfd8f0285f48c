// Every callback reads the clock before it does anything else: what the generator does with an
// answer is not the server's time.
#include "bench/load/load_client.h"

#include "bench/load/refusal_text.h"

namespace muster {
namespace {

constexpr int kOkFirst = 200;
constexpr int kOkLast = 299;
constexpr int kTooManyRequests = 429;
constexpr int kServiceUnavailable = 503;

SampleEnd end_of_status(int status) {
  if (status >= kOkFirst && status <= kOkLast) return SampleEnd::Answered;
  const bool is_refusal = status == kTooManyRequests || status == kServiceUnavailable;
  return is_refusal ? SampleEnd::Refused : SampleEnd::BadStatus;
}

// The status, and why, as far as the server says it.
std::string refusal_problem(int status, std::string_view body) {
  const auto text = refusal_text(body);
  const auto problem = "the status is " + std::to_string(status);
  return text.empty() ? problem : problem + ": " + text;
}

}  // namespace

Status LoadClient::open(EventLoop& loop, const HttpClientTarget& target) {
  is_connected_ = false;
  connection_ = MUSTER_TRY(HttpClientConnection::open(loop, target, *this));
  return Done{};
}

void LoadClient::begin(const Sample& sample, std::string_view bytes) {
  ended_ = {.sample = sample};
  refusal_.clear();
  is_busy_ = true;
  is_overfull_ = false;
  ended_.sample.started = owner_.now();
  connection_->send(bytes);
}

void LoadClient::on_connected() {
  is_connected_ = true;
  owner_.on_connected();
}

void LoadClient::on_sent() { ended_.sample.sent = owner_.now(); }

void LoadClient::on_head(int status, const HttpHeaders& headers) {
  ended_.sample.first_byte = owner_.now();
  ended_.sample.status = status;
  ended_.sample.outcome = end_of_status(status);
  ended_.timing = server_stages(headers);
  ended_.server = find_header(headers, "server").value_or("");
}

void LoadClient::on_body(std::string_view bytes) {
  if (ended_.sample.outcome == SampleEnd::Answered) {
    is_overfull_ = !reader_->on_body(bytes, owner_.now());
  } else {
    refusal_ += bytes.substr(0, kRefusalBytesMost + 1 - refusal_.size());
  }
  owner_.catch_up();
}

void LoadClient::take_facts(AnswerFacts facts) {
  auto& sample = ended_.sample;
  if (facts.problem) sample.outcome = SampleEnd::Unreadable;
  ended_.problem = std::move(facts.problem);
  if (!facts.token_times.empty()) {
    sample.first_token = facts.token_times.front();
    sample.last_token = facts.token_times.back();
  }
  sample.input_tokens = facts.input_tokens.value_or(-1);
  sample.output_tokens = facts.output_tokens.value_or(-1);
  ended_.text = std::move(facts.text);
  ended_.token_times = std::move(facts.token_times);
}

// An overfull answer is one that cannot be, whatever ends it.
void LoadClient::end_without_answer(SampleEnd outcome, std::string problem) {
  if (is_overfull_) return take_facts(reader_->finish());
  ended_.sample.outcome = outcome;
  ended_.problem = std::move(problem);
  reader_->drop();
}

void LoadClient::finish() {
  is_busy_ = false;
  owner_.keep(std::move(ended_));
}

void LoadClient::on_end(bool keeps_alive) {
  ended_.sample.end = owner_.now();
  if (ended_.sample.outcome == SampleEnd::Answered) {
    take_facts(reader_->finish());
  } else {
    reader_->drop();
    ended_.problem = refusal_problem(ended_.sample.status, refusal_);
  }
  finish();
  if (keeps_alive) return owner_.on_free(place_);
  connection_.reset();
  owner_.on_closed(place_, std::nullopt, true);
}

void LoadClient::on_failed(Error error) {
  if (is_busy_) {
    ended_.sample.end = owner_.now();
    end_without_answer(SampleEnd::Broken, error.message);
    finish();
  }
  connection_.reset();
  owner_.on_closed(place_, error, is_connected_);
}

void LoadClient::give_up(SampleEnd outcome) {
  ended_.sample.end = owner_.now();
  end_without_answer(outcome, "no answer in time");
  connection_.reset();
  finish();
}

}  // namespace muster
