// Requests put entries into a bounded queue, and one thread writes what has gathered there. When
// the queue is full, or a disk takes no more, lines are dropped and counted, and the next line that
// gets through carries the number: the file itself shows its gaps.

#include "server/audit_log.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "server/audit_file.h"

namespace muster {
namespace {

// Lines are given to the system together, up to about so much.
constexpr std::size_t kWriteSize = 64 * 1024;

// The thread is woken by the first entry and waits so long for more: at thousands of requests a
// second, a wake-up for each would cost the loop more than all else here.
constexpr auto kGatherTime = std::chrono::milliseconds(20);
constexpr std::size_t kGatherCount = 1024;

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
