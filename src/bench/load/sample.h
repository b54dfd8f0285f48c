#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// How a request ended.
enum class SampleEnd : std::uint8_t {
  Answered,    // 2xx, and what the API promises
  Refused,     // 429 or 503: the server says that it has too much to do
  BadStatus,   // any other status
  Broken,      // the connection, before the answer was whole
  TimedOut,    // no answer within the limit
  Unreadable,  // a 2xx whose body is not what the API promises
  Unsent,      // no connection was free before the trial ended
};

inline constexpr std::array kSampleEndNames{
    std::string_view("answered"), std::string_view("refused"),   std::string_view("bad_status"),
    std::string_view("broken"),   std::string_view("timed_out"), std::string_view("unreadable"),
    std::string_view("unsent")};

/// "answered", "refused", … Threads: pure.
inline std::string_view sample_end_name(SampleEnd end) {
  return kSampleEndNames[static_cast<std::size_t>(end)];
}

inline constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

/// One request. Times are in seconds from the start of its trial; `kNever` for what did not happen.
struct Sample {
  double intended = 0;  // when it was meant to be sent
  /// intended, or later: when a connection became free for it, less what the generator was late
  /// in coming to it.
  double ready = kNever;
  double started = kNever;     // the generator began to send it, or to connect for it
  double sent = kNever;        // the system had taken its last byte
  double first_byte = kNever;  // the head of the answer was here
  double first_token = kNever;
  double last_token = kNever;
  double end = kNever;  // the answer's last byte was here, or it was clear that none would come
  std::uint32_t request = 0;  // which of the prepared requests
  std::int32_t status = 0;    // of HTTP; 0: none came
  SampleEnd outcome = SampleEnd::Unsent;
  std::int64_t input_tokens = -1;   // as the server counts; -1: it does not say
  std::int64_t output_tokens = -1;  // the same, or as the tokenizer counts
  std::uint32_t token_events = 0;   // pieces of text that a stream came in
  std::uint64_t gaps_begin = 0;     // in TrialSamples::gaps; token_events - 1 of them

  bool is_answered() const { return outcome == SampleEnd::Answered; }
  /// From the time at which it was meant to be sent: what a user would have waited.
  double latency() const { return end - intended; }
  /// From the time at which it was sent: what the server was given.
  double service() const { return end - started; }
  /// How late the generator itself was.
  double lag() const { return started - ready; }
};

/// A stage that the server reports by Server-Timing.
struct StageColumn {
  std::string name;
  std::vector<double> seconds;  // one for each sample; kNever: not reported
};

/// What one trial has seen. samples: in the order of `intended`.
struct TrialSamples {
  std::vector<Sample> samples;
  std::vector<float> gaps;  // seconds between the pieces of a stream
  std::vector<StageColumn> stages;
  std::uint64_t stages_left_out = 0;  // times that a server reports, and that are none, or too many
  std::vector<std::string> texts;     // of the answers, where they are kept; one for each sample
  std::vector<double> tick_lateness;  // seconds: how late a timer of 10 ms was served
  double sending_seconds = 0;         // how long was sent
  double own_cpu_seconds = 0;         // of this process meanwhile
  std::uint64_t connections_opened = 0;
  std::uint32_t connections_most = 0;  // at one time
  std::string server;                  // the header of that name; empty: none
  std::vector<std::string> problems;   // the first few sentences of failures, each once
  std::string last_broken = {};        // that of the last connection that broke; empty: none did
};

}  // namespace muster
