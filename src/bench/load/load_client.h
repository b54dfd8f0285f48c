#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/load/answer_reader.h"
#include "bench/load/sample.h"
#include "bench/load/server_timing.h"
#include "net/http_client_connection.h"

namespace muster {

/// A request that has come to its end, with what only some of them have.
struct EndedRequest {
  Sample sample;
  ServerStages timing = {};  // that the server reports
  std::vector<double> token_times = {};
  std::string text = {};                    // of the answer, where it is kept
  std::string server = {};                  // the header of that name
  std::optional<std::string> problem = {};  // why it is not answered
};

/// What the clients of a trial tell it.
class LoadClientOwner {
 public:
  virtual ~LoadClientOwner() = default;

  /// Seconds since the start of the trial.
  virtual double now() const = 0;
  /// Something has come; there may be requests that are due.
  virtual void catch_up() = 0;
  virtual void on_connected() = 0;
  /// Called once for each request that was begun.
  virtual void keep(EndedRequest ended) = 0;
  /// The connection takes another request.
  virtual void on_free(std::size_t place) = 0;
  /// The connection is gone; `error` unless the server ended it behind an answer.
  virtual void on_closed(std::size_t place, const std::optional<Error>& error,
                         bool was_connected) = 0;
};

/// A connection with at most one request under way, whose sample it fills in.
///
/// Threads: the loop's.
class LoadClient final : public HttpAnswerSink {
 public:
  /// place: by which the owner knows it.
  LoadClient(LoadClientOwner& owner, std::size_t place, std::unique_ptr<AnswerReader> reader)
      : owner_(owner), place_(place), reader_(std::move(reader)) {}

  /// Connects, anew where it was closed. Errors: those of HttpClientConnection::open.
  Status open(EventLoop& loop, const HttpClientTarget& target);
  /// Sends a request, once it is connected. bytes: live until its end.
  void begin(const Sample& sample, std::string_view bytes);
  /// Closes the connection and ends its request so; one whose answer is overfull as Unreadable.
  /// Not from within a callback of its own.
  void give_up(SampleEnd outcome);

  bool is_busy() const { return is_busy_; }
  /// More has come of the answer than can be one: there is no use in waiting for its end.
  bool is_overfull() const { return is_overfull_; }
  const Sample& sample() const { return ended_.sample; }

 private:
  void on_connected() override;
  void on_sent() override;
  void on_head(int status, const HttpHeaders& headers) override;
  void on_body(std::string_view bytes) override;
  void on_end(bool keeps_alive) override;
  void on_failed(Error error) override;
  void take_facts(AnswerFacts facts);
  void end_without_answer(SampleEnd outcome, std::string problem);
  void finish();

  LoadClientOwner& owner_;
  const std::size_t place_;
  const std::unique_ptr<AnswerReader> reader_;
  std::unique_ptr<HttpClientConnection> connection_;
  EndedRequest ended_;
  std::string refusal_;  // the body of an answer that is none, up to a byte more than can be read
  bool is_busy_ = false;
  bool is_overfull_ = false;
  bool is_connected_ = false;
};

}  // namespace muster
