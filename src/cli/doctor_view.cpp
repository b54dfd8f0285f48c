#include "cli/doctor_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr std::array kWorstFirst{Verdict::Unfit, Verdict::Warning, Verdict::NotSeen,
                                 Verdict::NotApplicable, Verdict::Well};

std::string shown_device(const Check& check) {
  return check.device.empty() ? "machine" : check.device;
}

// Words into lines of at most `width` columns, none of them begun before `indent`. The first line
// is begun by `head`.
std::string wrapped(const std::string& head, const std::string& text, std::size_t indent,
                    std::size_t width) {
  auto out = head;
  auto column = display_width(head);
  if (column < indent) out.append(indent - column, ' ');
  column = std::max(column, indent);
  bool is_first = true;
  std::istringstream words(printable(text));
  for (std::string word; words >> word;) {
    const auto size = display_width(word);
    if (!is_first && column + 1 + size > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += size;
    is_first = false;
  }
  return out + "\n";
}

// Where the columns of lines in full begin.
struct Columns {
  std::size_t device = 0;
  std::size_t sentence = 0;
};

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
std::string full_lines(const Check& check, const Columns& columns, std::size_t width) {
  const auto head =
      fmt::format("{:<{}}{}", verdict_word(check.verdict), columns.device, shown_device(check));
  auto lines = wrapped(head, check.name + ": " + check.sentence, columns.sentence, width);
  if (!check.advice.empty()) {
    lines += wrapped(std::string(columns.sentence, ' ') + "do:", check.advice, columns.sentence + 4,
                     width);
  }
  return lines;
}

// What is measured is worth a line even where all is well.
bool is_shown_in_full(const Check& check) {
  if (check.verdict == Verdict::Well) {
    return check.name == "compute" || check.name == "compute_speed";
  }
  return check.verdict != Verdict::NotApplicable;
}

// "well  cuda:0, cuda:1  present, xid, ecc": devices of which the same is well share a line.
std::string short_lines(const std::vector<Check>& checks, Verdict verdict, std::size_t width) {
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
    text += wrapped(std::string(word), fmt::format("{}: {}", fmt::join(sharing, ", "), list),
                    word.size() + 2, width);
  }
  return text;
}

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

std::string doctor_text(const DoctorReport& report, std::size_t width, bool shows_all) {
  const auto overall = overall_verdict(report.checks);
  auto text = wrapped("",
                      fmt::format("{}: {} ({})", report.machine, verdict_word(overall),
                                  summary(report.checks)),
                      0, width) +
              "\n";
  std::vector<Check> full;
  std::copy_if(report.checks.begin(), report.checks.end(), std::back_inserter(full),
               [&](const Check& check) { return shows_all || is_shown_in_full(check); });
  const auto columns = columns_of(full);
  for (const auto verdict : kWorstFirst) {
    for (const auto& check : full) {
      if (check.verdict == verdict) text += full_lines(check, columns, width);
    }
    if (!shows_all) text += short_lines(report.checks, verdict, width);
  }
  if (!report.recommended.empty()) {
    text += "\nrecommended (muster doctor --recommend > muster.yaml):\n" +
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
