// Worst first: a person reads the first lines. What is well shares a line by device, what is not
// has a line of its own with the advice below it. The JSON has everything in the order of the
// checks and leaves the choice to its reader.

#include "cli/doctor_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "terminal/style.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

constexpr std::array kWorstFirst{Verdict::Unfit, Verdict::Warning, Verdict::NotSeen,
                                 Verdict::NotApplicable, Verdict::Well};

std::string shown_device(const Check& check) {
  return check.device.empty() ? "machine" : check.device;
}

Style style_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Well:
      return kGood;
    case Verdict::Warning:
      return kWarning;
    case Verdict::Unfit:
      return kBad;
    case Verdict::NotSeen:
    case Verdict::NotApplicable:
      return kQuiet;
  }
  return {};
}

// Lines that begin with the word of a verdict, in its colour.
std::string with_verdict(const std::string& lines, Verdict verdict, const TerminalInfo& terminal) {
  return styled_start(lines, verdict_word(verdict).size(), style_of(verdict), terminal.has_color);
}

// Where the columns of lines in full begin.
struct Columns {
  std::size_t device = 0;
  std::size_t sentence = 0;
};

// Over all checks that are shown, so that sentences of all verdicts begin in one column.
Columns columns_of(const std::vector<Check>& checks) {
  std::size_t verdict_width = 0;
  std::size_t device_width = 0;
  for (const auto& check : checks) {
    verdict_width = std::max(verdict_width, verdict_word(check.verdict).size());
    device_width = std::max(device_width, display_width(shown_device(check)));
  }
  return {.device = verdict_width + 2, .sentence = verdict_width + 2 + device_width + 2};
}

// "unfit    cuda:3  xid: the driver reported …", and what to do below it.
std::string full_lines(const Check& check, const Columns& columns, const TerminalInfo& terminal) {
  const auto head = padded(
      padded(verdict_word(check.verdict), columns.device) + shown_device(check), columns.sentence);
  const auto width = terminal.width;
  auto lines = wrapped(check.name + ": " + check.sentence,
                       {.width = width, .head = head, .indent = columns.sentence});
  if (!check.advice.empty()) {
    const auto advice = std::string(columns.sentence, ' ') + "do: ";
    lines +=
        wrapped(check.advice, {.width = width, .head = advice, .indent = columns.sentence + 4});
  }
  return with_verdict(lines, check.verdict, terminal);
}

// What is measured is worth a line even where all is well.
bool is_shown_in_full(const Check& check) {
  if (check.verdict == Verdict::Well) {
    return check.name == "compute" || check.name == "compute_speed";
  }
  return check.verdict != Verdict::NotApplicable;
}

// "well  cuda:0, cuda:1  present, xid, ecc": devices of which the same is well share a line.
std::string short_lines(const std::vector<Check>& checks, Verdict verdict,
                        const TerminalInfo& terminal) {
  std::vector<std::string> devices;  // in the order of the checks
  std::map<std::string, std::string> names;
  for (const auto& check : checks) {
    if (check.verdict != verdict || is_shown_in_full(check)) continue;
    const auto device = shown_device(check);
    auto& list = names[device];
    if (list.empty()) devices.push_back(device);
    list += (list.empty() ? "" : ", ") + check.name;
  }
  std::string text;
  while (!devices.empty()) {
    const auto list = names[devices.front()];
    std::vector<std::string> sharing;
    for (const auto& device : devices) {
      if (names[device] == list) sharing.push_back(device);
    }
    devices.erase(std::remove_if(devices.begin(), devices.end(),
                                 [&](const auto& device) { return names[device] == list; }),
                  devices.end());
    const auto word = verdict_word(verdict);
    const auto head = padded(word, word.size() + 2);
    const auto lines = wrapped(fmt::format("{}: {}", fmt::join(sharing, ", "), list),
                               {.width = terminal.width, .head = head, .indent = head.size()});
    text += with_verdict(lines, verdict, terminal);
  }
  return text;
}

// All verdicts with their numbers, so that a hidden line is at least counted.
std::string summary(const std::vector<Check>& checks) {
  std::vector<std::string> counts;
  for (const auto verdict : kWorstFirst) {
    const auto count = std::count_if(checks.begin(), checks.end(),
                                     [&](const Check& check) { return check.verdict == verdict; });
    if (count == 0) continue;
    const bool is_plural = verdict == Verdict::Warning && count > 1;
    counts.push_back(fmt::format("{} {}{}", count, verdict_word(verdict), is_plural ? "s" : ""));
  }
  return fmt::format("{}", fmt::join(counts, ", "));
}

using Json = nlohmann::ordered_json;

Json availability_json(const Availability& availability) {
  Json errors = Json::object();
  for (const auto& [name, reason] : availability.errors) errors[name] = reason;
  return {{"requested", availability.requested},
          {"available", availability.available},
          {"unavailable", availability.unavailable},
          {"errors", std::move(errors)},
          {"all_available", availability.all_available()}};
}

Json compute_json(const std::vector<ComputeOutcome>& outcomes) {
  Json list = Json::array();
  for (const auto& outcome : outcomes) {
    Json speeds = Json::array();
    for (const auto& speed : outcome.speeds) {
      speeds.push_back({{"precision", precision_name(speed.precision)},
                        {"flops_per_second", speed.flops_per_second},
                        {"busy_share", speed.busy_share},
                        {"rounds", speed.rounds},
                        {"wrong_row_count", speed.wrong_row_count}});
    }
    list.push_back({{"device", outcome.device.name()},
                    {"error", outcome.error ? Json(outcome.error->message) : Json()},
                    {"speeds", std::move(speeds)}});
  }
  return list;
}

}  // namespace

std::string doctor_text(const DoctorReport& report, const TerminalInfo& terminal, bool shows_all) {
  const auto overall = overall_verdict(report.checks);
  const auto begin = fmt::format("{}: ", report.machine);
  const auto head = fmt::format("{}{}", begin, verdict_word(overall));
  auto text =
      wrapped(fmt::format("{} ({})", head, summary(report.checks)), {.width = terminal.width});
  if (text.starts_with(head)) {
    text = begin + with_verdict(text.substr(begin.size()), overall, terminal);
  }
  text += '\n';
  std::vector<Check> full;
  std::copy_if(report.checks.begin(), report.checks.end(), std::back_inserter(full),
               [&](const Check& check) { return shows_all || is_shown_in_full(check); });
  const auto columns = columns_of(full);
  for (const auto verdict : kWorstFirst) {
    for (const auto& check : full) {
      if (check.verdict == verdict) text += full_lines(check, columns, terminal);
    }
    if (!shows_all) text += short_lines(report.checks, verdict, terminal);
  }
  if (!report.recommended.empty()) {
    const auto title = styled("recommended", kHeading, terminal.has_color);
    text += "\n" + title + " (muster doctor --recommend > muster.yaml):\n" +
            recommendation_yaml(report.recommended);
  }
  return text;
}

std::string doctor_json(const DoctorReport& report) {
  const auto overall = overall_verdict(report.checks);
  Json checks = Json::array();
  for (const auto& check : report.checks) {
    checks.push_back({{"name", check.name},
                      {"device", check.device.empty() ? Json() : Json(check.device)},
                      {"verdict", verdict_word(check.verdict)},
                      {"sentence", check.sentence},
                      {"advice", check.advice.empty() ? Json() : Json(check.advice)}});
  }
  const Json json{{"machine", report.machine},
                  {"verdict", verdict_word(overall)},
                  {"exit_code", doctor_exit_code(overall)},
                  {"checks", std::move(checks)},
                  {"availability", availability_json(report.availability)},
                  {"compute", compute_json(report.compute)},
                  {"recommended", recommendation_yaml(report.recommended)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
