#pragma once

#include <string>

#include "jobs/replies.h"
#include "terminal/terminal_info.h"

namespace muster {

/// The report of a run over prompts for people: how many replies, how fast and where they are, then
/// what is worth knowing of the prompts, and a table of devices.
std::string describe_replies(const RepliesReport& report, const TerminalInfo& terminal);

/// The report for programs: one JSON object in one line, units last.
std::string replies_report_json(const RepliesReport& report);

}  // namespace muster
