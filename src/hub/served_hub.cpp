// A hub for tests, under two names of this machine that a client takes for two hosts: only so can a
// test see that a token does not follow a redirect. The store stands behind a relay that cuts
// connections after a given number of bytes, as a broken network would, which a server that answers
// properly cannot do itself. Both servers answer from the same files under one lock.

#include "hub/served_hub.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "hub/content_hash.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the reader has gone: the relay sees it
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string hash_of_content(const std::string& bytes, bool is_large) {
  ContentHash hash(is_large ? HashKind::Sha256 : HashKind::GitBlob, bytes.size());
  hash.update(bytes);
  return hash.finish();
}

fs::path fresh_folder() {
  static std::atomic<int> number = 0;
  return fs::path(testing::TempDir()) / fmt::format("hub.{}.{}", ::getpid(), ++number);
}

}  // namespace

// --- CuttingRelay --------------------------------------------------------------------------------

CuttingRelay::CuttingRelay(std::uint16_t target)
    : target_(target),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  auto address = loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener_.get(), SOMAXCONN), 0);
  EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] { run(); });
}

CuttingRelay::~CuttingRelay() {
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  thread_.join();
}

void CuttingRelay::cut_next(std::deque<std::size_t> after) {
  const std::lock_guard lock(mutex_);
  cuts_ = std::move(after);
}

void CuttingRelay::run() {
  while (true) {
    std::array<pollfd, 2> waiting{pollfd{listener_.get(), POLLIN, 0},
                                  pollfd{stop_.get(), POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[1].revents != 0) return;
    const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.is_open()) relay(client.get());
  }
}

void CuttingRelay::relay(int client) {
  std::size_t left = SIZE_MAX;
  {
    const std::lock_guard lock(mutex_);
    if (!cuts_.empty()) {
      left = cuts_.front();
      cuts_.pop_front();
    }
  }
  const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(target_);
  if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;  // the client sees its connection closed
  }
  std::array<char, 4096> piece{};
  while (left > 0) {
    std::array<pollfd, 3> waiting{pollfd{client, POLLIN, 0}, pollfd{server.get(), POLLIN, 0},
                                  pollfd{stop_.get(), POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[2].revents != 0) return;
    if (waiting[0].revents != 0) {
      const auto count = ::recv(client, piece.data(), piece.size(), 0);
      if (count <= 0) return;
      send_all(server.get(), {piece.data(), static_cast<std::size_t>(count)});
    }
    if (waiting[1].revents != 0) {
      const auto count = ::recv(server.get(), piece.data(), std::min(piece.size(), left), 0);
      if (count <= 0) return;
      send_all(client, {piece.data(), static_cast<std::size_t>(count)});
      left -= static_cast<std::size_t>(count);
    }
  }
}

// --- ServedHub -----------------------------------------------------------------------------------

ServedHub::ServedHub() {
  ::setenv("no_proxy", "127.0.0.1,localhost", 1);  // whatever proxy this machine has
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  auto hub = HttpServer::start(options, [this](const HttpRequest& request, HttpRespond respond) {
    respond(answer(request, hub_seen_, false));
  });
  auto store = HttpServer::start(options, [this](const HttpRequest& request, HttpRespond respond) {
    respond(answer(request, store_seen_, true));
  });
  EXPECT_TRUE(hub && store);
  hub_ = std::move(*hub);
  store_ = std::move(*store);
  relay_ = std::make_unique<CuttingRelay>(store_->port());
}

std::string ServedHub::endpoint() const { return fmt::format("http://127.0.0.1:{}", hub_->port()); }

void ServedHub::put(const std::string& path, const std::string& content, bool is_large) {
  const std::lock_guard lock(mutex_);
  files_[path] = {.listed = content, .served = content, .is_large = is_large};
}

void ServedHub::spoil(const std::string& path, const std::string& content) {
  const std::lock_guard lock(mutex_);
  files_.at(path).served = content;
}

void ServedHub::answer_first(Answer answer) {
  const std::lock_guard lock(mutex_);
  first_ = std::move(answer);
}

void ServedHub::ignore_ranges() {
  const std::lock_guard lock(mutex_);
  ignores_ranges_ = true;
}

std::vector<SeenRequest> ServedHub::hub_requests() const {
  const std::lock_guard lock(mutex_);
  return hub_seen_;
}

std::vector<SeenRequest> ServedHub::store_requests() const {
  const std::lock_guard lock(mutex_);
  return store_seen_;
}

void ServedHub::forget_requests() {
  const std::lock_guard lock(mutex_);
  hub_seen_.clear();
  store_seen_.clear();
}

std::string ServedHub::hash_of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto& file = files_.at(path);
  return hash_of_content(file.listed, file.is_large);
}

HttpResponse ServedHub::answer(const HttpRequest& request, std::vector<SeenRequest>& seen,
                               bool is_store) {
  const std::lock_guard lock(mutex_);
  seen.push_back({.path = request.path,
                  .query = request.query,
                  .token = std::string(request.header("Authorization").value_or("")),
                  .range = std::string(request.header("Range").value_or(""))});
  if (first_) {
    if (auto response = first_(request)) return *std::move(response);
  }
  if (request.path.starts_with("/api/")) return listing();
  const auto start =
      is_store ? std::string("/store/") : fmt::format("/{}/resolve/{}/", kModel, kCommit);
  const auto found = request.path.starts_with(start)
                         ? files_.find(request.path.substr(start.size()))
                         : files_.end();
  if (found == files_.end()) {
    return {
        .status = 404, .body = "Entry not found", .headers = {{"X-Error-Code", "EntryNotFound"}}};
  }
  if (found->second.is_large && !is_store) {
    return {.status = 302,
            .body = "Found",
            .headers = {{"Location", fmt::format("http://localhost:{}/store/{}", relay_->port(),
                                                 found->first)}}};
  }
  return content(request, found->second.served);
}

HttpResponse ServedHub::content(const HttpRequest& request, const std::string& bytes) const {
  const auto range = request.header("Range").value_or("");
  if (ignores_ranges_ || !range.starts_with("bytes=")) return {.body = bytes};
  const auto from = std::stoull(std::string(range.substr(6)));
  if (from >= bytes.size()) return {.status = 416, .body = "no such range"};
  return {.status = 206,
          .body = bytes.substr(from),
          .headers = {{"Content-Range",
                       fmt::format("bytes {}-{}/{}", from, bytes.size() - 1, bytes.size())}}};
}

HttpResponse ServedHub::listing() const {
  auto siblings = nlohmann::json::array();
  for (const auto& [path, file] : files_) {
    nlohmann::json entry{{"rfilename", path},
                         {"size", file.listed.size()},
                         {"blobId", hash_of_content(file.listed, false)}};
    if (file.is_large) {
      entry["lfs"] = {{"size", file.listed.size()},
                      {"sha256", hash_of_content(file.listed, true)},
                      {"pointerSize", 133}};
    }
    siblings.push_back(std::move(entry));
  }
  return {.content_type = "application/json",
          .body = nlohmann::json{{"id", kModel}, {"sha", kCommit}, {"siblings", siblings}}.dump()};
}

// --- PullFixture ---------------------------------------------------------------------------------

PullFixture::PullFixture() : cache(fresh_folder()) {}

PullFixture::~PullFixture() { fs::remove_all(cache); }

HubAccess PullFixture::access() const {
  return {.endpoint = hub.endpoint(),
          .token = token,
          .token_place = token.empty() ? "" : "HF_TOKEN",
          .certificates = {},
          .cache = cache};
}

PullEvents PullFixture::events() {
  return {.on_progress = [this](const PullProgress& progress) { bytes_here = progress.bytes_done; },
          .on_notice = [this](const std::string& sentence) { notices.push_back(sentence); },
          .is_cancelled = [this] { return bytes_here >= cancel_at; },
          .wait =
              [this](Duration duration) {
                waits.push_back(duration);
                on_wait();
              }};
}

Result<std::uint64_t> PullFixture::pull(PullOptions options) {
  const auto plan = MUSTER_TRY(plan_pull(access(), options, events()));
  return fetch_files(access(), plan, events());
}

std::string PullFixture::fault(PullOptions options) {
  const auto received = pull(std::move(options));
  return received ? "no error" : received.error().message;
}

fs::path PullFixture::growing(const std::string& path) const {
  return model_folder() / "blobs" / (hub.hash_of(path) + ".incomplete");
}

std::string text_of(const fs::path& path) {
  const auto text = read_file(path);
  return text ? *text : "<none>";
}

}  // namespace muster
