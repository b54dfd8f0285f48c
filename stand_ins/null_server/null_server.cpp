// Connections read requests; each gets its end in virtual time and joins the agenda, which one
// timer serves. Tokens of streams are entries of the agenda like all others.
#include "null_server/null_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>

#include "base/unique_fd.h"
#include "net/http_request_reader.h"
#include "net/socket_address.h"
#include "null_server/null_answers.h"

namespace muster {
namespace {

constexpr int kBacklog = 4096;
constexpr std::size_t kReadSize = 64 << 10;
constexpr int kOk = 200;
constexpr int kServerError = 500;
constexpr double kMillisecond = 1e-3;

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

struct Client {
  UniqueFd socket;
  std::unique_ptr<EventLoop::Watch> watch;
  std::optional<HttpRequestReader> reader;
  std::string unread;
  bool is_waiting = false;  // for its answer
};

/// An answer under way.
struct Answer {
  std::uint64_t client = 0;
  NullRequest request;
  int status = kOk;
  std::string timing = {};  // the value of Server-Timing
  TimePoint arrival{};
  std::uint64_t tokens_sent = 0;
  bool keeps_alive = true;
};

class LoopNullServer final : public NullServer {
 public:
  LoopNullServer(EventLoop& loop, const NullServerOptions& options)
      : loop_(loop),
        options_(options),
        services_(options.law.value_or(ServiceLaw::Deterministic), options.mean_seconds,
                  options.seed),
        buffer_(kReadSize) {}

  Status listen();
  std::uint16_t port() const override { return SocketAddress::of_socket(listener_.get()).port(); }
  std::uint64_t answered() const override { return answered_; }

 private:
  void accept();
  void on_readable(std::uint64_t id);
  void read_requests(std::uint64_t id, Client& client);
  void take(std::uint64_t id, HttpRequest request);
  double service_of(TimePoint now);
  void serve_agenda();
  void arm();
  void send_answer(Answer& answer);
  void send_stream(Answer answer, TimePoint due);
  void finish(const Answer& answer);
  bool send(std::uint64_t id, std::string_view bytes);
  void freeze() const;

  EventLoop& loop_;
  const NullServerOptions options_;
  ServiceTimes services_;
  UniqueFd listener_;
  std::unique_ptr<EventLoop::Watch> listener_watch_;
  std::unique_ptr<EventLoop::Timer> agenda_timer_;
  std::unique_ptr<EventLoop::Timer> freeze_timer_;
  std::map<std::uint64_t, Client> clients_;
  std::multimap<TimePoint, Answer> agenda_;
  std::vector<char> buffer_;
  std::ofstream log_;
  std::uint64_t next_id_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t answered_ = 0;
  std::optional<TimePoint> first_request_;
  TimePoint queue_end_{};  // when the queue's server is done with all that it has
};

Status LoopNullServer::listen() {
  auto address = SocketAddress::parse(options_.listen.host == "localhost" ? "127.0.0.1"
                                                                          : options_.listen.host);
  if (!address) {
    return Error{ErrorKind::InvalidArgument, options_.listen.host + " is no address"};
  }
  address->set_port(options_.listen.port);
  listener_.reset(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener_.get(), address->get(), address->size()) != 0 ||
      ::listen(listener_.get(), kBacklog) != 0) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("cannot listen on {}: {}", address->text(), std::strerror(errno))};
  }
  if (!options_.log_file.empty()) {
    log_.open(options_.log_file);
    if (!log_) return Error{ErrorKind::InvalidArgument, options_.log_file + " cannot be written"};
  }
  listener_watch_ = loop_.watch(listener_.get(), [this] { accept(); });
  agenda_timer_ = loop_.timer([this] { serve_agenda(); }, EventLoop::Wait::Polling);
  freeze_timer_ = loop_.timer([this] { freeze(); });
  return Done{};
}

void LoopNullServer::accept() {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const auto id = next_id_++;
    auto& client = clients_[id];
    client.socket = std::move(socket);
    client.reader.emplace(HttpLimits{.body_bytes = 256 << 20});
    client.watch = loop_.watch(client.socket.get(), [this, id] { on_readable(id); });
  }
}

void LoopNullServer::on_readable(std::uint64_t id) {
  auto& client = clients_.at(id);
  const auto size = ::recv(client.socket.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN) return;
  if (size <= 0) {
    clients_.erase(id);
    return;
  }
  client.unread.append(buffer_.data(), static_cast<std::size_t>(size));
  read_requests(id, client);
}

void LoopNullServer::read_requests(std::uint64_t id, Client& client) {
  if (client.is_waiting) return;  // one at a time
  client.unread.erase(0, client.reader->put(client.unread));
  if (client.reader->refusal()) {
    clients_.erase(id);
    return;
  }
  if (!client.reader->is_done()) return;
  client.is_waiting = true;
  auto request = client.reader->take();
  client.reader.emplace(HttpLimits{.body_bytes = 256 << 20});
  take(id, std::move(request));
}

// The service time of the request that comes now.
double LoopNullServer::service_of(TimePoint now) {
  if (!options_.law) return 0;
  const double service = services_.next();
  const double since = seconds(now - *first_request_);
  if (since >= options_.warm_up_seconds) return service;
  const double left = 1 - since / options_.warm_up_seconds;
  return service * (1 + (options_.warm_up_factor - 1) * left);
}

void LoopNullServer::take(std::uint64_t id, HttpRequest request) {
  const auto now = std::chrono::steady_clock::now();
  if (!first_request_) {
    first_request_ = now;
    if (options_.freeze_seconds > 0) freeze_timer_->set(now + duration_of(options_.freeze_at));
  }
  Answer answer{.client = id,
                .request = read_null_request(request.path, request.body),
                .arrival = now,
                .keeps_alive = request.wants_keep_alive};
  ++taken_;
  if (options_.fail_every > 0 && taken_ % options_.fail_every == 0) answer.status = kServerError;
  const double service = service_of(now);
  const double wait = options_.law ? std::max(0.0, seconds(queue_end_ - now)) : 0;
  queue_end_ = now + duration_of(wait + service);
  double rest = 0;
  answer.timing = fmt::format("queue;dur={:.6f}, service;dur={:.6f}", wait / kMillisecond,
                              service / kMillisecond);
  for (const auto& [name, time] : options_.stages) {
    answer.timing += fmt::format(", {};dur={:.6f}", name, time / kMillisecond);
    rest += time;
  }
  agenda_.emplace(queue_end_ + duration_of(rest), std::move(answer));
  serve_agenda();
}

void LoopNullServer::arm() {
  if (agenda_.empty()) {
    agenda_timer_->clear();
  } else {
    agenda_timer_->set(agenda_.begin()->first);
  }
}

void LoopNullServer::serve_agenda() {
  while (!agenda_.empty() && agenda_.begin()->first <= std::chrono::steady_clock::now()) {
    auto entry = agenda_.extract(agenda_.begin());
    auto& answer = entry.mapped();
    if (clients_.count(answer.client) == 0) continue;
    if (answer.request.is_stream && answer.request.is_generation() && answer.status == kOk) {
      send_stream(std::move(answer), entry.key());
    } else {
      send_answer(answer);
    }
  }
  arm();
}

bool LoopNullServer::send(std::uint64_t id, std::string_view bytes) {
  const auto& client = clients_.at(id);
  const auto size =
      ::send(client.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (size == static_cast<ssize_t>(bytes.size())) return true;
  clients_.erase(id);
  return false;
}

void LoopNullServer::send_answer(Answer& answer) {
  auto body = answer.status == kOk ? null_body(answer.request)
                                   : std::string(R"({"error":{"message":"told to fail"}})");
  if (options_.speaks_nonsense) body = "<html>nonsense</html>";
  const auto bytes = fmt::format(
      "HTTP/1.1 {}\r\nServer: muster-null-server\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Server-Timing: {}\r\n{}\r\n{}",
      answer.status == kOk ? "200 OK" : "500 Internal Server Error",
      answer.request.kind == NullRequest::Kind::Plain ? "text/plain" : "application/json",
      body.size(), answer.timing, answer.keeps_alive ? "" : "Connection: close\r\n", body);
  if (send(answer.client, bytes)) finish(answer);
}

std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

// The next token of a stream; the one after it is due a gap later, whenever this one was sent.
void LoopNullServer::send_stream(Answer answer, TimePoint due) {
  std::string bytes;
  if (answer.tokens_sent == 0) {
    bytes = fmt::format(
        "HTTP/1.1 200 OK\r\nServer: muster-null-server\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\nServer-Timing: {}\r\n{}\r\n",
        answer.timing, answer.keeps_alive ? "" : "Connection: close\r\n");
  }
  bytes += chunk(options_.speaks_nonsense ? "data: {nonsense\n\n"
                                          : null_token_event(answer.request, answer.tokens_sent));
  ++answer.tokens_sent;
  const bool is_last = answer.tokens_sent >= answer.request.output_tokens;
  if (is_last) bytes += chunk(null_last_events(answer.request)) + "0\r\n\r\n";
  if (!send(answer.client, bytes)) return;
  if (is_last) return finish(answer);
  agenda_.emplace(due + duration_of(options_.token_gap_seconds), std::move(answer));
}

void LoopNullServer::finish(const Answer& answer) {
  ++answered_;
  if (log_.is_open()) {
    const auto sent = std::chrono::steady_clock::now();
    log_ << answer.arrival.time_since_epoch().count() << ' ' << sent.time_since_epoch().count()
         << '\n';
  }
  if (!answer.keeps_alive) {
    clients_.erase(answer.client);
    return;
  }
  auto& client = clients_.at(answer.client);
  client.is_waiting = false;
  if (client.unread.empty()) return;
  // What came meanwhile; behind this turn, as this may be called for many answers.
  loop_.post([this, id = answer.client] {
    const auto found = clients_.find(id);
    if (found != clients_.end()) read_requests(id, found->second);
  });
}

// The fault that is asked for: nothing is read, answered or accepted meanwhile.
void LoopNullServer::freeze() const {
  const auto whole = static_cast<time_t>(options_.freeze_seconds);
  constexpr double kNanoseconds = 1e9;
  const timespec time{
      whole,
      static_cast<long>((options_.freeze_seconds - static_cast<double>(whole)) * kNanoseconds)};
  ::nanosleep(&time, nullptr);
}

}  // namespace

Result<std::unique_ptr<NullServer>> NullServer::start(EventLoop& loop,
                                                      const NullServerOptions& options) {
  auto server = std::make_unique<LoopNullServer>(loop, options);
  MUSTER_TRY(server->listen());
  return std::unique_ptr<NullServer>(std::move(server));
}

}  // namespace muster
