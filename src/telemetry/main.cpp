// muster-sampler: the program that talks to the drivers. It is started by muster with its socket
// and the memory they share open, and links what reading devices takes and nothing else: it runs
// beside every muster that watches devices, all the time.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "base/build_info.h"
#include "telemetry/sampler.h"

int main(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--version") {
    fmt::print("muster-sampler {}\n", muster::build_name());
    return 0;
  }
  if (word != muster::kSamplerFlag || argc != 3) {
    fmt::print(stderr,
               "muster-sampler is started by muster; `muster monitor` shows what it reads\n");
    return muster::exit_code(muster::ErrorKind::InvalidArgument);
  }
  if (argv[2] != muster::build_name()) {
    fmt::print(stderr,
               "muster-sampler is {}, and the muster that starts it {}: install both anew\n",
               muster::build_name(), argv[2]);
    return muster::exit_code(muster::ErrorKind::Unavailable);
  }
  // A collector that goes is the end of a socket, not of this process in the middle of a write.
  std::signal(SIGPIPE, SIG_IGN);
  const muster::SteadyClock clock;
  const auto status = muster::run_sampler(muster::UniqueFd(muster::kSamplerSocket),
                                          muster::UniqueFd(muster::kSamplerPage),
                                          muster::UniqueFd(muster::kSamplerRing), clock);
  if (status) return 0;
  fmt::print(stderr, "muster-sampler: {}\n", status.error().message);
  return muster::exit_code(status.error().kind);
}
