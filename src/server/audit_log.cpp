// Requests put entries into a bounded queue, and one thread writes what has gathered there. When
// the queue is full, or a disk takes no more, lines are dropped and counted, and the next line that
// gets through carries the number: the file itself shows its gaps. A line that a full disk has cut
// is ended with a line break before the next one, so that a fault never costs more than its own
// line.

#include "server/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace muster {
namespace {

// Lines are given to the system together, up to about so much.
constexpr std::size_t kWriteSize = 64 * 1024;

// The thread is woken by the first entry and waits so long for more: at thousands of requests a
// second, a wake-up for each would cost the loop more than all else here.
constexpr auto kGatherTime = std::chrono::milliseconds(20);
constexpr std::size_t kGatherCount = 1024;

// The file below the name; used by one thread.
class AuditFile {
 public:
  explicit AuditFile(std::filesystem::path path) : path_(std::move(path)) {}

  // It stays non-blocking: a pipe without a reader must not hold up the start, nor a full one the
  // end. For files O_NONBLOCK means nothing.
  Status open() {
    MUSTER_TRY(check_content());
    UniqueFd fd(::open(path_.c_str(),
                       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
    if (!fd.is_open()) {
      if (errno == ENXIO) {
        return Error{ErrorKind::Unavailable,
                     fmt::format("{}: nobody reads this pipe", path_.string())};
      }
      return system_error(path_.string(), "open", errno);
    }
    fd_ = std::move(fd);
    is_torn_ = false;
    return Done{};
  }

  // A file of something else, such as the keys, must not get lines of the log.
  Status check_content() const {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path_, ignored)) return Done{};
    const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    char first = '{';
    if (!fd.is_open() || ::pread(fd.get(), &first, 1, 0) < 1) return Done{};
    // A line break ends a line that a full disk has cut.
    if (first == '{' || first == '\n') return Done{};
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} is there and holds no lines of JSON to go on with; another name "
                             "is needed",
                             path_.string())};
  }

  // All of it or, when the disk is full, what fits: `written` says how much. A pipe that is full is
  // waited for as long as `may_wait` says.
  Status write(std::string_view lines, std::size_t& written,
               const std::function<bool()>& may_wait) {
    written = 0;
    const bool is_new = is_moved();
    if (is_new || is_broken_) {
      const bool is_torn = is_torn_ && !is_new;
      if (const auto opened = open(); !opened && !fd_.is_open()) return opened.error();
      is_torn_ = is_torn;
      is_broken_ = false;
    }
    if (is_torn_) {
      // A disk that was full cut a line; whatever comes begins a new one.
      if (const auto ended = ::write(fd_.get(), "\n", 1); ended != 1) return failed(errno);
      is_torn_ = false;
    }
    while (written < lines.size()) {
      const auto count = ::write(fd_.get(), lines.data() + written, lines.size() - written);
      if (count < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_reader(may_wait)))) continue;
      if (count < 0) {
        const int why = errno;
        is_torn_ = written > 0 && lines[written - 1] != '\n';
        return failed(why);
      }
      written += static_cast<std::size_t>(count);
    }
    return Done{};
  }

 private:
  Error failed(int why) {
    is_broken_ = true;
    return system_error(path_.string(), "write", why);
  }

  bool wait_for_reader(const std::function<bool()>& may_wait) const {
    constexpr int kLookMs = 20;  // how soon it notices that it may wait no longer
    while (may_wait()) {
      pollfd waited{fd_.get(), POLLOUT, 0};
      if (::poll(&waited, 1, kLookMs) > 0) return true;
    }
    errno = EAGAIN;
    return false;
  }

  // Compares inodes, not names: after a rotation the descriptor still leads to the old file. It
  // costs two system calls for each batch of lines, not for each line.
  bool is_moved() const {
    struct stat here {};
    struct stat there {};
    return ::fstat(fd_.get(), &here) != 0 || ::stat(path_.c_str(), &there) != 0 ||
           here.st_ino != there.st_ino || here.st_dev != there.st_dev;
  }

  const std::filesystem::path path_;
  UniqueFd fd_;
  bool is_torn_ = false;    // the file ends inside a line
  bool is_broken_ = false;  // it did not take the last lines
};

class ThreadedAuditLog final : public AuditLog {
 public:
  ThreadedAuditLog(AuditFile file, OnChange on_change)
      : file_(std::move(file)), on_change_(std::move(on_change)) {
    thread_ = std::jthread([this] { run(); });
  }

  ~ThreadedAuditLog() override {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      end_by_ = std::chrono::steady_clock::now() + kEndTime;
    }
    changed_.notify_all();
    thread_.join();
  }

  void write(AuditEntry entry) override {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kQueueCapacity) {
        ++status_.dropped_count;
        ++untold_count_;
        return;
      }
      waiting_.push_back({std::move(entry), std::exchange(untold_count_, 0)});
      if (waiting_.size() != 1 && waiting_.size() != kGatherCount) return;  // it knows, or is busy
    }
    changed_.notify_all();
  }

  void flush() override {
    std::unique_lock lock(mutex_);
    is_hurried_ = true;
    changed_.notify_all();
    idle_.wait(lock, [this] { return waiting_.empty() && !is_writing_; });
    is_hurried_ = false;
  }

  AuditStatus status() const override {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  struct Waiting {
    AuditEntry entry;
    std::uint64_t dropped_before = 0;
  };

  // A line among those that are written together.
  struct Line {
    std::size_t end = 0;     // where it ends
    std::uint64_t told = 0;  // how many dropped ones it tells of
  };

  void run() {
    std::vector<Waiting> batch;
    batch.reserve(kQueueCapacity);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      changed_.wait_for(lock, kGatherTime, [this] {
        return is_closed_ || is_hurried_ || waiting_.size() >= kGatherCount;
      });
      batch.swap(waiting_);
      is_writing_ = true;
      lock.unlock();
      write_batch(batch);
      batch.clear();
      lock.lock();
      is_writing_ = false;
      if (waiting_.empty()) idle_.notify_all();
    }
  }

  void write_batch(const std::vector<Waiting>& batch) {
    std::string lines;
    std::vector<Line> marks;
    for (const auto& [entry, dropped_before] : batch) {
      const std::uint64_t told = dropped_before + std::exchange(lost_count_, 0);
      lines += audit_line(entry, told);
      marks.push_back({lines.size(), told});
      if (lines.size() >= kWriteSize) write_lines(lines, marks);
    }
    if (!lines.empty()) write_lines(lines, marks);
  }

  // A line that did not get in whole is lost, with what it told; the next one says so.
  void write_lines(std::string& lines, std::vector<Line>& marks) {
    std::size_t written = 0;
    const auto outcome = file_.write(lines, written, [this] {
      const std::lock_guard lock(mutex_);
      return !is_closed_ || std::chrono::steady_clock::now() < end_by_;
    });
    std::uint64_t lost = 0;
    for (const auto& line : marks) {
      if (line.end <= written) continue;
      ++lost;
      lost_count_ += 1 + line.told;
    }
    {
      const std::lock_guard lock(mutex_);
      status_.written_count += marks.size() - lost;
      status_.dropped_count += lost;
      status_.last_error = outcome ? std::nullopt : std::optional(outcome.error());
    }
    tell_change(outcome);
    lines.clear();
    marks.clear();
  }

  // Once when lines begin to be lost and once when that is over, not for each line.
  void tell_change(const Status& outcome) {
    if (outcome.has_value() != is_failing_) return;
    is_failing_ = !outcome.has_value();
    if (!on_change_) return;
    on_change_(outcome ? std::nullopt : std::optional(outcome.error()), status().dropped_count);
  }

  AuditFile file_;  // the thread's
  const OnChange on_change_;
  bool is_failing_ = false;       // the thread's
  std::uint64_t lost_count_ = 0;  // the thread's: not told yet
  mutable std::mutex mutex_;      // guards what follows
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::vector<Waiting> waiting_;
  std::uint64_t untold_count_ = 0;  // dropped since the last entry that was taken
  bool is_writing_ = false;
  bool is_hurried_ = false;
  bool is_closed_ = false;
  std::chrono::steady_clock::time_point end_by_{};
  AuditStatus status_;
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::filesystem::path& path,
                                                 OnChange on_change) {
  AuditFile file(path);
  MUSTER_TRY(file.open());
  return std::unique_ptr<AuditLog>(
      std::make_unique<ThreadedAuditLog>(std::move(file), std::move(on_change)));
}

}  // namespace muster
