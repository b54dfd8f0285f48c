// The reader thread keeps the pipe empty for as long as the program lives: one that is full would
// stop a server that logs in the middle of a measurement. The program's end is waited for by a
// pidfd, which also ends every other wait.
#include "bench/child/child_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/child_process.h"
#include "base/text.h"
#include "bench/child/cancel_watch.h"
#include "hw/cpu/process_reader.h"
#include "net/http_client.h"

extern char** environ;

namespace muster {
namespace {

constexpr std::string_view kListening = "listening on http://";
constexpr std::string_view kMusterSays = "muster: ";  // before the error that a command ends with
constexpr auto kAskPeriod = std::chrono::milliseconds(20);      // of a server that is not ready
constexpr auto kCancelPeriod = std::chrono::milliseconds(100);  // nothing wakes us for that
constexpr auto kLastWordsLimit = std::chrono::seconds(1);  // children of its own may hold the pipe
constexpr auto kEndLimit = std::chrono::seconds(30);
constexpr int kOk = 200;
constexpr std::size_t kProcessesMost = 4'096;  // of a server: a worker a device, and some around

TimePoint now() { return std::chrono::steady_clock::now(); }

// The address in a line of a log, up to what cannot belong to it.
std::string url_in(std::string_view text) {
  const auto at = text.find(kListening);
  if (at == std::string_view::npos) return {};
  const auto begin = at + kListening.size();
  const auto end = text.find_first_not_of("0123456789abcdef.:[]", begin);
  if (end == std::string_view::npos) return {};  // the line goes on
  return "http://" + std::string(text.substr(begin, end - begin));
}

// Of a process alone.
double own_cpu_seconds(pid_t pid) {
  const auto stat = read_process_stat(static_cast<std::uint32_t>(pid));
  if (!stat) return 0;
  return static_cast<double>(stat->cpu_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// nullopt: no kind ends a command so.
std::optional<ErrorKind> kind_of_exit_code(int code) {
  for (std::uint8_t i = 0; i < kErrorKindCount; ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    if (exit_code(kind) == code) return kind;
  }
  return std::nullopt;
}

// That ended a process. nullopt: it exited, or runs.
std::optional<int> end_signal_of(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid || (info.si_code != CLD_KILLED && info.si_code != CLD_DUMPED)) {
    return std::nullopt;
  }
  return info.si_status;
}

// What a program said last knows nothing of these; of others, as SIGABRT, it mostly says the
// reason.
bool comes_from_outside(int number) { return number == SIGKILL || number == SIGTERM; }

// Until one of them can be read (-1: none), at most so long; a signal ends the wait, too.
void wait_for(int one, int other, Duration limit) {
  std::array<pollfd, 2> waiting{{{one, POLLIN, 0}, {other, POLLIN, 0}}};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(limit, Duration{0}));
  (void)::poll(waiting.data(), waiting.size(), static_cast<int>(ms.count()));
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), ignored)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

// As execve wants them; `texts` stays where it is.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// fork, not posix_spawn: the program is to end when this one is killed, and only it can ask for
// that.
Result<pid_t> spawn(std::vector<std::string> words,
                    std::optional<std::vector<std::string>> environment, int output) {
  const auto pointers = pointers_to(words);
  std::vector<char*> own_environment;
  if (environment) own_environment = pointers_to(*environment);
  char** const variables = environment ? own_environment.data() : environ;
  if (::access(pointers[0], X_OK) != 0) return system_error(words.front(), "run", errno);
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto parent = ::getpid();
  const auto pid = ::fork();
  if (pid < 0) return system_error(words.front(), "run", errno);
  if (pid > 0) return pid;
  // In the child: nothing but system calls. A group of its own, as Ctrl-C is ours to pass on.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  std::signal(SIGPIPE, SIG_DFL);
  ::execve(pointers[0], pointers.data(), variables);
  constexpr int kCannotRun = 126;
  ::_exit(kCannotRun);
}

}  // namespace

ChildServer::ChildServer(pid_t pid, Descriptors descriptors)
    : pid_(pid), descriptors_(std::move(descriptors)), reader_([this] { read_output(); }) {}

ChildServer::~ChildServer() {
  ::kill(pid_, SIGTERM);
  ::kill(pid_, SIGCONT);  // one that somebody has stopped would not hear of it
  if (!ends_by(now() + kEndLimit)) ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  reader_.join();
}

void ChildServer::read_output() {
  std::array<char, 4096> piece{};
  std::string line;
  for (;;) {
    const auto size = ::read(descriptors_.output.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return all_read_.set_value();
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(size));
    const MutexLock lock(mutex_);
    keep_child_output(tail_, bytes);
    if (!said_url_.empty()) continue;
    line += bytes;
    said_url_ = url_in(line);
    if (!said_url_.empty()) (void)::eventfd_write(descriptors_.said.get(), 1);
  }
}

// Without reaping it: the destructor does.
bool ChildServer::has_ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid_;
}

bool ChildServer::ends_by(TimePoint limit) const {
  while (!has_ended()) {
    const auto left = limit - now();
    if (left <= Duration{0}) return false;
    wait_for(descriptors_.process.get(), -1, left);
  }
  return true;
}

std::string ChildServer::last_words() const {
  // Its end may be known before the reader has come to what it said at last.
  if (has_ended()) (void)is_all_read_.wait_for(kLastWordsLimit);
  const MutexLock lock(mutex_);
  const auto lines = split(trim(tail_), '\n');
  return lines.back();
}

std::string ChildServer::how_it_ended() const {
  const auto number = end_signal_of(pid_);
  if (!number) return fmt::format("ended: {}", last_words());
  auto how = fmt::format("was ended by signal {} ({})", *number, ::strsignal(*number));
  if (comes_from_outside(*number)) return how;
  const auto said = last_words();
  return said.empty() ? how : fmt::format("{}: {}", how, said);
}

// Of one that has ended before it was ready. What muster says of its own end is a whole sentence,
// and its exit code tells the kind.
Error ChildServer::end_error(std::string_view who) const {
  siginfo_t info{};
  const bool has_exited =
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_ && info.si_code == CLD_EXITED;
  const auto kind = has_exited ? kind_of_exit_code(info.si_status) : std::nullopt;
  if (kind) {
    const auto said = last_words();
    if (said.starts_with(kMusterSays)) return Error{*kind, said.substr(kMusterSays.size())};
  }
  return Error{ErrorKind::Unavailable, fmt::format("{} {}", who, how_it_ended())};
}

Result<std::unique_ptr<ChildServer>> ChildServer::start(
    const std::vector<std::string>& words, Duration limit,
    const std::function<bool()>& is_cancelled,
    const std::optional<std::vector<std::string>>& environment) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("a pipe", "open", errno);
  Descriptors descriptors{.process = {}, .output = UniqueFd(ends[0]), .said = {}};
  UniqueFd there(ends[1]);
  descriptors.said.reset(::eventfd(0, EFD_CLOEXEC));
  if (!descriptors.said.is_open()) return system_error("an eventfd", "open", errno);
  const auto pid = MUSTER_TRY(spawn(words, environment, there.get()));
  // The program's end is the reader's end of file only if nobody else can write.
  there.reset();
  descriptors.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!descriptors.process.is_open()) {
    const auto error = system_error(words.front(), "watch", errno);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return error;
  }
  std::unique_ptr<ChildServer> child(new ChildServer(pid, std::move(descriptors)));
  const auto until = now() + limit;
  while (now() < until) {
    {
      const MutexLock lock(child->mutex_);
      child->url_ = child->said_url_;
    }
    if (!child->url_.empty()) return child;
    if (child->has_ended()) return child->end_error(words.front());
    if (is_cancelled()) return Error{ErrorKind::Cancelled, "cancelled"};
    wait_for(child->descriptors_.process.get(), child->descriptors_.said.get(),
             std::min<Duration>(until - now(), kCancelPeriod));
  }
  return Error{ErrorKind::DeadlineExceeded,
               fmt::format("{} does not listen within {:.0f} s: {}", words.front(), seconds(limit),
                           child->last_words())};
}

Status ChildServer::wait_for_answer(std::string_view target,
                                    const std::function<Result<bool>(const HttpAnswer&)>& is_enough,
                                    Duration limit,
                                    const std::function<bool()>& is_cancelled) const {
  const auto until = now() + limit;
  const CancelWatch watch(is_cancelled);
  const auto client = MUSTER_TRY(HttpClient::open(url_, {.cancel_fd = watch.fd()}));
  while (now() < until) {
    const auto answer = client->call("GET", target);
    if (answer) {
      const bool is_there = MUSTER_TRY(is_enough(*answer));
      if (is_there) return Done{};
    }
    if (has_ended()) return end_error("the server");
    if (is_cancelled()) return Error{ErrorKind::Cancelled, "cancelled"};
    wait_for(descriptors_.process.get(), -1, kAskPeriod);
  }
  return Error{
      ErrorKind::DeadlineExceeded,
      fmt::format("the server is not ready within {:.0f} s: {}", seconds(limit), last_words())};
}

Status ChildServer::wait_until_ready(std::string_view target, Duration limit,
                                     const std::function<bool()>& is_cancelled) const {
  return wait_for_answer(
      target, [](const HttpAnswer& answer) { return answer.status == kOk; }, limit, is_cancelled);
}

Status ChildServer::check_running() const {
  if (!has_ended()) return Done{};
  return Error{ErrorKind::Unavailable, fmt::format("the server {}", how_it_ended())};
}

std::vector<pid_t> ChildServer::processes() const {
  std::vector<pid_t> all{pid_};
  // Each is looked at once: what was started since stands behind it.
  for (std::size_t i = 0; i < all.size() && all.size() < kProcessesMost; ++i) {
    const auto children = children_of(all[i]);
    all.insert(all.end(), children.begin(), children.end());
  }
  return all;
}

double ChildServer::cpu_seconds() const {
  double sum = 0;
  for (const auto pid : processes()) sum += own_cpu_seconds(pid);
  return sum;
}

}  // namespace muster
