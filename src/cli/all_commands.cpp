// The commands of the program, for main and for tests that look at all of them.
#include "cli/command.h"

namespace muster {

std::vector<Command> all_commands() {
  std::vector<Command> all;
  all.push_back(embed_command());
  all.push_back(pull_command());
  all.push_back(serve_command());
  all.push_back(ctl_command());
  all.push_back(search_command());
  all.push_back(generate_command());
  all.push_back(chat_command());
  all.push_back(tokenize_command());
  all.push_back(plan_command());
  all.push_back(estimate_command());
  all.push_back(devices_command());
  all.push_back(top_command());
  all.push_back(monitor_command());
  all.push_back(bench_command());
  all.push_back(doctor_command());
  all.push_back(config_command());
  all.push_back(keys_command());
  all.push_back(deploy_command());
  all.push_back(completion_command());
  all.push_back(manual_command());
  return all;
}

}  // namespace muster
