#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::load {

struct LoadOptions {
  std::string host;
  std::uint16_t port = 0;
  std::vector<std::string> requests;  // as bytes on the wire, taken in turn
  double rate = 0;                    // requests a second, open loop; 0: closed loop
  bool is_poisson = false;            // open loop: else all gaps are equal
  std::uint32_t connections = 1;
  double seconds = 10;                      // of sending
  std::uint64_t requests_most = ~0ULL;      // sends no more than these
  std::optional<std::uint64_t> check_rows;  // "embedding" must occur so often in each answer
  std::uint64_t seed = 1;
};

struct Second {
  std::uint64_t ok = 0;
  std::uint64_t refused = 0;
  std::uint64_t other = 0;
};

/// What happened. Latencies are in milliseconds from the time a request was meant to be sent, so
/// that a server that stands still is charged for all who would have asked meanwhile, until the
/// answer's last byte is here: what this program does with it is not the server's.
/// Source: Gil Tene, "How NOT to Measure Latency" (coordinated omission).
struct LoadResult {
  std::map<int, std::uint64_t> statuses;
  std::vector<float> ok_ms;
  std::vector<float> refused_ms;  // 429 and 503
  std::vector<float> lag_ms;      // from the intended time to the real one
  std::uint64_t refused_with_retry_after = 0;
  std::uint64_t sent = 0;
  std::uint64_t broken = 0;      // connections that ended, or did not speak HTTP, with a request on
  std::uint64_t unanswered = 0;  // when the time to wait was over, or never sent
  std::uint64_t wrong_rows = 0;
  std::uint64_t reconnects = 0;
  double sending_seconds = 0;  // how long was sent
  std::vector<Second> timeline;
};

/// One thread, epoll, keep-alive connections with one request at a time on each. In open loop a
/// request that finds no free connection waits for one.
class LoadGenerator {
 public:
  explicit LoadGenerator(LoadOptions options);

  /// Errors: Unavailable when the server cannot be reached at the start.
  Result<LoadResult> run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    UniqueFd socket;
    bool is_busy = false;
    Clock::time_point intended;
    std::string_view unsent;
    std::string answer;         // as far as it has come
    std::size_t head_size = 0;  // 0: the head is not whole
    bool is_chunked = false;
    std::size_t next_chunk = 0;   // where its size stands, when the body comes in chunks
    std::size_t answer_size = 0;  // 0: not known yet
  };

  Status connect(std::size_t index);
  void reconnect(std::size_t index);
  void watch(std::size_t index, std::uint32_t events, bool is_new);
  void plan_arrivals(Clock::time_point now);
  void start_requests(Clock::time_point now);
  void start(std::size_t index, Clock::time_point intended, Clock::time_point now);
  void send_more(std::size_t index);
  void receive(std::size_t index);
  bool read_head(Client& client);
  bool read_chunks(Client& client);
  void finish(std::size_t index, Clock::time_point now);
  void fail(std::size_t index);
  void wait(Clock::time_point now);
  bool is_over(Clock::time_point now);

  const LoadOptions options_;
  LoadResult result_;
  UniqueFd epoll_;
  std::vector<Client> clients_;
  std::vector<std::size_t> free_;
  std::deque<Clock::time_point> waiting_;  // intended times without a connection yet
  std::mt19937_64 random_;
  Clock::time_point begin_;
  Clock::time_point end_of_sending_;
  Clock::time_point next_arrival_;
  std::uint64_t planned_ = 0;
  std::size_t next_request_ = 0;
  std::vector<char> buffer_;
};

}  // namespace muster::load
