#include "load_generator.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "net/socket_address.h"

namespace muster::load {
namespace {

constexpr std::size_t kReadSize = 256 << 10;
constexpr auto kWaitAfterwards = std::chrono::seconds(30);
constexpr std::string_view kHeadEnd = "\r\n\r\n";

float milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<float, std::milli>(duration).count();
}

bool is_refusal(int status) { return status == 429 || status == 503; }

std::uint64_t count_of(std::string_view text, std::string_view part) {
  std::uint64_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// The value of a header; our own server's heads are short, so a plain walk is enough.
std::optional<std::string_view> header_of(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const auto end = std::min(head.find("\r\n"), head.size());
    const auto line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    const bool is_it = std::equal(name.begin(), name.end(), line.begin(),
                                  [](char a, char b) { return a == lower(b); });
    if (!is_it) continue;
    auto value = line.substr(name.size() + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_of(std::string_view text, int base = 10) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

LoadGenerator::LoadGenerator(LoadOptions options)
    : options_(std::move(options)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      clients_(options_.connections),
      random_(options_.seed),
      buffer_(kReadSize) {}

Status LoadGenerator::connect(std::size_t index) {
  auto address = SocketAddress::parse(options_.host == "localhost" ? "127.0.0.1" : options_.host);
  if (!address) return Error{ErrorKind::InvalidArgument, options_.host + " is no address"};
  address->set_port(options_.port);
  auto& client = clients_[index];
  client.socket.reset(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.socket.get(), address->get(), address->size()) != 0) {
    return Error{ErrorKind::Unavailable, address->text() + ": " + std::strerror(errno)};
  }
  const int on = 1;
  ::setsockopt(client.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch(index, EPOLLIN, true);
  return Done{};
}

void LoadGenerator::watch(std::size_t index, std::uint32_t events, bool is_new) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = index;
  ::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, clients_[index].socket.get(),
              &event);
}

void LoadGenerator::reconnect(std::size_t index) {
  auto& client = clients_[index];
  client = {};
  ++result_.reconnects;
  // A server that takes nobody any more leaves this connection out of the game.
  if (connect(index)) free_.push_back(index);
}

// All arrivals up to now, whether or not a connection is free.
void LoadGenerator::plan_arrivals(Clock::time_point now) {
  while (next_arrival_ <= now && next_arrival_ < end_of_sending_ &&
         planned_ < options_.requests_most) {
    waiting_.push_back(next_arrival_);
    ++planned_;
    double gap = 1 / options_.rate;
    if (options_.is_poisson) gap = std::exponential_distribution<double>(options_.rate)(random_);
    next_arrival_ +=
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gap));
  }
}

void LoadGenerator::start_requests(Clock::time_point now) {
  if (options_.rate > 0) plan_arrivals(now);
  const bool is_closed_loop = options_.rate == 0;
  while (!free_.empty()) {
    if (is_closed_loop) {
      if (now >= end_of_sending_ || planned_ >= options_.requests_most) return;
      ++planned_;
      waiting_.push_back(now);
    }
    if (waiting_.empty()) return;
    const auto index = free_.back();
    free_.pop_back();
    const auto intended = waiting_.front();
    waiting_.pop_front();
    start(index, intended, now);
  }
}

void LoadGenerator::start(std::size_t index, Clock::time_point intended, Clock::time_point now) {
  auto& client = clients_[index];
  client.is_busy = true;
  client.intended = intended;
  client.unsent = options_.requests[next_request_];
  next_request_ = (next_request_ + 1) % options_.requests.size();
  ++result_.sent;
  result_.lag_ms.push_back(milliseconds(now - intended));
  send_more(index);
}

void LoadGenerator::send_more(std::size_t index) {
  auto& client = clients_[index];
  const auto size = ::send(client.socket.get(), client.unsent.data(), client.unsent.size(),
                           MSG_NOSIGNAL | MSG_DONTWAIT);
  if (size < 0 && errno != EAGAIN) return fail(index);
  const bool had_waited = client.unsent.size() != 0 && size < 0;
  client.unsent.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (!client.unsent.empty()) {
    watch(index, EPOLLIN | EPOLLOUT, false);
  } else if (had_waited) {
    watch(index, EPOLLIN, false);
  }
}

// False when what has come is no answer.
bool LoadGenerator::read_head(Client& client) {
  const auto end = client.answer.find(kHeadEnd);
  if (end == std::string::npos) return true;
  const auto head = std::string_view(client.answer).substr(0, end);
  if (!head.starts_with("HTTP/1.1 ")) return false;
  client.head_size = end + kHeadEnd.size();
  client.is_chunked = header_of(head, "transfer-encoding") == "chunked";
  client.next_chunk = client.head_size;
  if (client.is_chunked) return true;
  const auto length = header_of(head, "content-length");
  const auto size = length ? number_of(*length) : std::nullopt;
  if (!size) return false;
  client.answer_size = client.head_size + *size;
  client.answer.reserve(client.answer_size);
  return true;
}

// As far as they have come; false when they are none. Source: RFC 9112, section 7.1; trailers are
// not expected.
bool LoadGenerator::read_chunks(Client& client) {
  constexpr std::string_view kLineEnd = "\r\n";
  while (client.answer_size == 0) {
    const auto end = client.answer.find(kLineEnd, client.next_chunk);
    if (end == std::string::npos) return true;
    const auto line =
        std::string_view(client.answer).substr(client.next_chunk, end - client.next_chunk);
    const auto size = number_of(line, 16);
    if (!size) return false;
    client.next_chunk = end + kLineEnd.size() + *size + kLineEnd.size();
    if (*size == 0) client.answer_size = client.next_chunk;
    if (client.next_chunk > client.answer.size()) return true;
  }
  return true;
}

void LoadGenerator::receive(std::size_t index) {
  auto& client = clients_[index];
  const auto size = ::recv(client.socket.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN) return;
  if (size <= 0) return fail(index);
  const auto now = Clock::now();
  if (!client.is_busy) return fail(index);
  client.answer.append(buffer_.data(), static_cast<std::size_t>(size));
  if (client.head_size == 0 && !read_head(client)) return fail(index);
  if (client.is_chunked && !read_chunks(client)) return fail(index);
  if (client.answer_size > 0 && client.answer.size() >= client.answer_size) finish(index, now);
}

void LoadGenerator::finish(std::size_t index, Clock::time_point now) {
  auto& client = clients_[index];
  const auto latency = milliseconds(now - client.intended);
  const std::string_view answer = client.answer;
  const auto head = answer.substr(0, client.head_size);
  constexpr std::size_t kStatusAt = 9;  // after "HTTP/1.1 "
  const auto status = static_cast<int>(number_of(head.substr(kStatusAt)).value_or(0));
  ++result_.statuses[status];
  const auto second = static_cast<std::size_t>(std::chrono::duration<double>(now - begin_).count());
  if (result_.timeline.size() <= second) result_.timeline.resize(second + 1);
  auto& row = result_.timeline[second];
  if (status == 200) {
    result_.ok_ms.push_back(latency);
    ++row.ok;
    if (options_.check_rows &&
        count_of(answer.substr(client.head_size), "\"embedding\":") != *options_.check_rows) {
      ++result_.wrong_rows;
    }
  } else if (is_refusal(status)) {
    result_.refused_ms.push_back(latency);
    ++row.refused;
    result_.refused_with_retry_after += header_of(head, "retry-after").has_value() ? 1 : 0;
  } else {
    ++row.other;
  }
  const auto connection = header_of(head, "connection");
  if (connection == "close" || !client.unsent.empty()) return reconnect(index);
  client.is_busy = false;
  client.answer.clear();
  client.answer_size = client.head_size = 0;
  free_.push_back(index);
}

void LoadGenerator::fail(std::size_t index) {
  const bool was_busy = clients_[index].is_busy;
  if (was_busy) ++result_.broken;
  if (!was_busy) std::erase(free_, index);
  reconnect(index);
}

bool LoadGenerator::is_over(Clock::time_point now) {
  // In open loop an arrival of the window counts, however late this wakes up.
  const auto next = options_.rate > 0 ? next_arrival_ : now;
  const bool is_sending = next < end_of_sending_ && planned_ < options_.requests_most;
  if (is_sending) return false;
  const auto busy = static_cast<std::size_t>(
      std::ranges::count_if(clients_, [](const Client& client) { return client.is_busy; }));
  const bool is_done = busy == 0 && waiting_.empty();
  if (!is_done && now < end_of_sending_ + kWaitAfterwards) return false;
  result_.unanswered = busy + waiting_.size();
  return true;
}

void LoadGenerator::wait(Clock::time_point now) {
  auto until = now < end_of_sending_ ? end_of_sending_ : end_of_sending_ + kWaitAfterwards;
  if (options_.rate > 0 && next_arrival_ < end_of_sending_ && planned_ < options_.requests_most) {
    until = next_arrival_;
  }
  const auto left = std::max(until - now, Clock::duration::zero());
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec timeout{whole.count(), (left - whole).count()};
  std::array<epoll_event, 256> events;
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   &timeout, nullptr);
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    const auto index = static_cast<std::size_t>(event.data.u64);
    if ((event.events & EPOLLOUT) != 0) send_more(index);
    if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0) receive(index);
  }
}

Result<LoadResult> LoadGenerator::run() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    MUSTER_TRY(connect(i));
    free_.push_back(i);
  }
  begin_ = Clock::now();
  next_arrival_ = begin_;
  end_of_sending_ = begin_ + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(options_.seconds));
  for (auto now = begin_; !is_over(now); now = Clock::now()) {
    start_requests(now);
    wait(Clock::now());
  }
  const auto sent_until = std::min(Clock::now(), end_of_sending_);
  result_.sending_seconds = std::chrono::duration<double>(sent_until - begin_).count();
  return std::move(result_);
}

}  // namespace muster::load
