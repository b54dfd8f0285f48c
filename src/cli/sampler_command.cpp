#include "base/unique_fd.h"
#include "cli/command.h"
#include "telemetry/sampler.h"

namespace muster {
namespace {

CommandSpec sampler_spec() {
  return {
      .name = "sampler",
      .summary = "reads the drivers for a muster that started it",
      .usage = "--socket-fd 3",
      .groups = {{"Given by that muster",
                  {},
                  {{"--socket-fd", "N", "its socket; the memory they share is at the next two"}}}},
      .examples = "",
      .is_hidden = true};
}

Result<int> run_sampler_command(const CommandContext& context) {
  if (context.arguments.value("--socket-fd") != std::to_string(kSamplerSocket)) {
    return Error{ErrorKind::InvalidArgument,
                 "muster sampler is started by muster itself; muster monitor shows what it reads"};
  }
  MUSTER_TRY(run_sampler(UniqueFd(kSamplerSocket), UniqueFd(kSamplerPage), UniqueFd(kSamplerRing),
                         context.clock));
  return 0;
}

}  // namespace

Command sampler_command() { return {sampler_spec(), run_sampler_command}; }

}  // namespace muster
