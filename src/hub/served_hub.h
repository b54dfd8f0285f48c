#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "hub/pull.h"
#include "net/http_server.h"

namespace muster {

/// Passes connections on to a server of this machine, and cuts them off where a test wants it.
///
/// Threads: thread-safe; one connection is served at a time, by a thread that the destructor ends.
class CuttingRelay {
 public:
  explicit CuttingRelay(std::uint16_t target);
  ~CuttingRelay();
  CuttingRelay(const CuttingRelay&) = delete;
  CuttingRelay& operator=(const CuttingRelay&) = delete;

  std::uint16_t port() const { return port_; }

  /// The next connections end after so many bytes of answers, one for each; later ones are whole.
  void cut_next(std::deque<std::size_t> after);

 private:
  void run();
  void relay(int client);

  const std::uint16_t target_;
  UniqueFd listener_;
  UniqueFd stop_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::deque<std::size_t> cuts_;
  std::jthread thread_;
};

/// A request as the hub or its store of large files has seen it.
struct SeenRequest {
  std::string path;
  std::string query;
  std::string token;  // the header Authorization
  std::string range;
};

/// A hub on this machine with one model, org/tiny: the list of files and small files are served by
/// "127.0.0.1", the large ones, after a redirect, by "localhost", which is another host to a
/// client.
class ServedHub {
 public:
  static constexpr auto kModel = "org/tiny";
  // A std::string cannot be constexpr here. NOLINTNEXTLINE(readability-identifier-naming)
  static inline const std::string kCommit = std::string(40, 'c');

  ServedHub();

  std::string endpoint() const;
  CuttingRelay& store_relay() { return *relay_; }

  /// Adds or replaces a file. It is large where `is_large` says so: named by SHA-256, redirected.
  void put(const std::string& path, const std::string& content, bool is_large = false);

  /// The bytes that are served differ from those that are listed.
  void spoil(const std::string& path, const std::string& content);

  /// Answers in the place of the hub and its store, where it has something to say. It runs on the
  /// server's threads.
  using Answer = std::function<std::optional<HttpResponse>(const HttpRequest&)>;
  void answer_first(Answer answer);

  /// From now on every answer is the whole file.
  void ignore_ranges();

  std::vector<SeenRequest> hub_requests() const;
  std::vector<SeenRequest> store_requests() const;
  void forget_requests();

  /// The hash that names the content of a file.
  std::string hash_of(const std::string& path) const;

 private:
  struct File {
    std::string listed;
    std::string served;
    bool is_large = false;
  };

  HttpResponse answer(const HttpRequest& request, std::vector<SeenRequest>& seen, bool is_store);
  HttpResponse content(const HttpRequest& request, const std::string& bytes) const;
  HttpResponse listing() const;

  mutable std::mutex mutex_;  // of all below
  std::map<std::string, File> files_;
  Answer first_;
  bool ignores_ranges_ = false;
  std::vector<SeenRequest> hub_seen_;
  std::vector<SeenRequest> store_seen_;
  std::unique_ptr<HttpServer> hub_;
  std::unique_ptr<HttpServer> store_;
  std::unique_ptr<CuttingRelay> relay_;
};

/// A cache folder of its own and the events of a pull, whose waits take no time.
class PullFixture {
 public:
  PullFixture();
  ~PullFixture();
  PullFixture(const PullFixture&) = delete;
  PullFixture& operator=(const PullFixture&) = delete;

  HubAccess access() const;
  PullEvents events();

  /// Plans and fetches. The value: the bytes that came over the network.
  Result<std::uint64_t> pull(PullOptions options = {.model = ServedHub::kModel});

  /// The message of a pull that is refused.
  std::string fault(PullOptions options = {.model = ServedHub::kModel});

  std::filesystem::path model_folder() const { return cache / "models--org--tiny"; }
  std::filesystem::path snapshot() const {
    return model_folder() / "snapshots" / ServedHub::kCommit;
  }
  std::filesystem::path growing(const std::string& path) const;

  ServedHub hub;
  std::filesystem::path cache;
  std::string token;
  std::vector<std::string> notices;
  std::vector<Duration> waits;
  std::function<void()> on_wait = [] {};
  std::uint64_t cancel_at = UINT64_MAX;  // as soon as so many bytes are here
  std::uint64_t bytes_here = 0;
};

/// The content of a file; "<none>" where there is none.
std::string text_of(const std::filesystem::path& path);

}  // namespace muster
