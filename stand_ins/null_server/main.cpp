// muster-null-server [--listen 127.0.0.1:0] [--law deterministic|exponential] [--mean SECONDS]
//   [--seed N] [--stage NAME=SECONDS]... [--token-gap SECONDS] [--warm-up SECONDS --warm-up-factor
//   X]
//   [--freeze-at SECONDS --freeze SECONDS] [--nonsense] [--fail-every N] [--log FILE]
//
// A server that does no work and takes exactly as long as it is told (null_server.h), for trying
// load generators. Prints "listening on http://127.0.0.1:PORT" and runs until SIGTERM or until the
// process that started it ends. FILE gets a line for each answer: when its request came and when it
// was sent, in nanoseconds of one clock.

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "null_server/null_server.h"

namespace {

using muster::NullServerOptions;

constexpr int kUsage = 2;

[[noreturn]] void stop(const std::string& why) {
  fmt::print(stderr, "muster-null-server: {}\n", why);
  std::exit(kUsage);
}

double number(std::string_view flag, std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (!is_whole || !std::isfinite(value) || value < 0) {
    stop(fmt::format("{} wants a number from 0 on: \"{}\"", flag, text));
  }
  return value;
}

void take_stage(const std::string& value, NullServerOptions& options) {
  const auto equals = value.find('=');
  if (equals == std::string::npos || equals == 0) {
    stop(fmt::format("--stage wants NAME=SECONDS: \"{}\"", value));
  }
  options.stages.emplace_back(value.substr(0, equals), number("--stage", value.substr(equals + 1)));
}

bool take_switch(const std::string& flag, NullServerOptions& options) {
  if (flag != "--nonsense") return false;
  options.speaks_nonsense = true;
  return true;
}

void take(const std::string& flag, const std::string& value, NullServerOptions& options) {
  if (flag == "--listen") {
    const auto listen = muster::parse_listen_address(value);
    if (!listen) stop(listen.error().message);
    options.listen = *listen;
  } else if (flag == "--law") {
    options.law = muster::service_law_of(value);
    if (!options.law) stop(fmt::format("--law is deterministic or exponential: \"{}\"", value));
  } else if (flag == "--stage") {
    take_stage(value, options);
  } else if (flag == "--mean") {
    options.mean_seconds = number(flag, value);
  } else if (flag == "--seed") {
    options.seed = static_cast<std::uint64_t>(number(flag, value));
  } else if (flag == "--token-gap") {
    options.token_gap_seconds = number(flag, value);
  } else if (flag == "--warm-up") {
    options.warm_up_seconds = number(flag, value);
  } else if (flag == "--warm-up-factor") {
    options.warm_up_factor = number(flag, value);
  } else if (flag == "--freeze-at") {
    options.freeze_at = number(flag, value);
  } else if (flag == "--freeze") {
    options.freeze_seconds = number(flag, value);
  } else if (flag == "--log") {
    options.log_file = value;
  } else if (flag == "--fail-every") {
    options.fail_every = static_cast<std::uint32_t>(number(flag, value));
  } else {
    stop("unknown flag " + flag);
  }
}

}  // namespace

int main(int count, char** words) {
  NullServerOptions options;
  for (int i = 1; i < count; ++i) {
    const std::string flag = words[i];
    if (take_switch(flag, options)) continue;
    if (i + 1 == count) stop(flag + " wants a value");
    take(flag, words[++i], options);
  }
  // It never outlives a benchmark that was killed.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  const muster::UniqueFd signals(::signalfd(-1, &ending, SFD_CLOEXEC));
  muster::EventLoop loop;
  const auto on_signal = loop.watch(signals.get(), [&loop] { loop.stop(); });
  const auto server = muster::NullServer::start(loop, options);
  if (!server) stop(server.error().message);
  fmt::print("listening on http://127.0.0.1:{}\n", (*server)->port());
  std::fflush(stdout);
  loop.run();
  return 0;
}
