// `muster manual`: the page that `cmake --install` puts where man finds it.
#include "cli/command.h"
#include "cli/manual.h"

namespace muster {
namespace {

CommandSpec manual_spec() {
  return {.name = "manual",
          .summary = "print the manual page, for man",
          .usage = "",
          .groups = {},
          .examples =
              "  muster manual > muster.1\n"
              "  muster manual | man -l -\n"};
}

Result<int> run_manual(const CommandContext& context) {
  MUSTER_TRY(context.output.append(manual_page(all_commands())));
  return 0;
}

}  // namespace

Command manual_command() { return {manual_spec(), run_manual}; }

}  // namespace muster
