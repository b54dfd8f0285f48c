// The report is for somebody who wants to know whether it worked, how fast, and which device did
// what; where each second went is for those who ask. Rates are over the whole time, start included,
// because that is what the person has waited for; those of a device are over the time in which it
// could work.
#include "cli/embed_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "jobs/duplicate_ids.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

// A share as "97 %"; "-" where there is nothing to share.
std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

// Whole numbers: what is behind the point is noise at these rates.
std::string rate(std::uint64_t count, double time_seconds) {
  return time_seconds > 0
             ? with_thousands(static_cast<std::uint64_t>(static_cast<double>(count) / time_seconds))
             : "-";
}

std::string table_text(const Table& table, const TerminalInfo& terminal) {
  return table.render(terminal.width, terminal.has_color);
}

Table device_table(const EmbedReport& report) {
  Table table({{"device"},
               {"texts", Align::Right},
               {.title = "tokens", .align = Align::Right, .leaves = 2},
               {"tokens/s", Align::Right},
               {.title = "busy", .align = Align::Right, .leaves = 3},
               {.title = "restarts", .align = Align::Right, .leaves = 1}});
  for (const auto& device : report.progress.devices) {
    const Style restarts = device.restart_count > 0 ? kWarning : Style{};
    table.add_row({device.name,
                   with_thousands(device.text_count),
                   with_thousands(device.token_count),
                   rate(device.token_count, device.ready_seconds),
                   device.busy_seconds ? percent(*device.busy_seconds, device.ready_seconds) : "-",
                   {with_thousands(device.restart_count), restarts}});
  }
  return table;
}

// The devices that did not work to the end, and why: the others did their work.
std::string device_warnings(const EmbedProgress& progress, const TerminalInfo& terminal) {
  constexpr std::string_view kWord = "warning:";
  std::string out;
  for (const auto& device : progress.devices) {
    if (device.state != "given up") continue;
    const auto lines =
        wrapped(fmt::format("{} {} was given up: {}", kWord, device.name, device.reason),
                {.width = terminal.width, .indent = 2});
    out += styled_start(lines, kWord.size(), kWarning, terminal.has_color);
  }
  return out;
}

Table time_table(const EmbedReport& report) {
  Table table({{"time of muster"}, {"seconds", Align::Right}, {"share", Align::Right}});
  const auto& time = report.time;
  const auto row = [&](const char* name, double part) {
    table.add_row({name, fmt::format("{:.2f}", part), percent(part, report.total_seconds)});
  };
  row("read", time.read);
  row("wait for devices", time.wait);
  row("wait for the disk", time.wait_for_writer);
  row("other", time.other);
  row("tokenise, beside", time.tokenize);
  row("write, beside", time.write);
  return table;
}

// The devices' mean busy share, weighted by how long each was there.
std::string busy_share(const EmbedProgress& progress) {
  double busy = 0;
  double ready = 0;
  for (const auto& device : progress.devices) {
    if (!device.busy_seconds) continue;
    busy += *device.busy_seconds;
    ready += device.ready_seconds;
  }
  return percent(busy, ready);
}

// How long it took to begin, and whose CPU time it cost. What a server does beside is its own
// affair.
std::vector<std::string> work_sentences(const EmbedReport& report) {
  if (!report.worker_cpu_seconds) {
    return {fmt::format("the server was ready after {:.2f} s, first vector after {:.2f} s",
                        report.time.start, report.first_vector_seconds),
            fmt::format("CPU time: {:.1f} s in muster; the server counts its own",
                        report.parent_cpu_seconds)};
  }
  const double workers = *report.worker_cpu_seconds;
  return {fmt::format("devices busy {}; first worker ready after {:.2f} s, first vector after "
                      "{:.2f} s",
                      busy_share(report.progress), report.time.start, report.first_vector_seconds),
          fmt::format("CPU time: {:.1f} s in the workers, {:.1f} s in muster ({})", workers,
                      report.parent_cpu_seconds,
                      percent(report.parent_cpu_seconds, report.parent_cpu_seconds + workers))};
}

// Ids that should be different and are not.
std::vector<std::string> duplicate_remarks(const EmbedReport& report) {
  const auto count = report.progress.duplicate_id_count;
  std::vector<std::string> sentences;
  if (count > 0) {
    sentences.push_back(
        fmt::format("{} {} the id of an earlier one, the first at {}", with_thousands(count),
                    count == 1 ? "record has" : "records have", report.first_duplicate));
  }
  if (!report.are_all_ids_compared) {
    sentences.push_back(fmt::format("ids were compared with the first {} alone",
                                    with_thousands(DuplicateIds::kIdsMost)));
  }
  return sentences;
}

// What happened to texts beside being embedded; nothing where nothing did.
std::vector<std::string> remarks_of(const EmbedReport& report) {
  const auto& progress = report.progress;
  struct Remark {
    std::uint64_t count;
    const char* of_one;
    const char* of_more;
  };
  const Remark remarks[] = {
      {progress.resumed_count, "row was there already (--resume)",
       "rows were there already (--resume)"},
      {progress.blank_count, "blank line was passed over", "blank lines were passed over"},
      {progress.truncated_count, "text was cut at the token limit",
       "texts were cut at the token limit"},
      {report.index.empty() ? 0 : progress.bad_count, "bad record was skipped; the index says why",
       "bad records were skipped; the index says why"},
      {report.index.empty() ? progress.bad_count : 0, "bad record was skipped; its line says why",
       "bad records were skipped; their lines say why"}};
  std::vector<std::string> sentences;
  for (const auto& [count, of_one, of_more] : remarks) {
    if (count == 0) continue;
    sentences.push_back(fmt::format("{} {}", with_thousands(count), count == 1 ? of_one : of_more));
  }
  for (auto& sentence : duplicate_remarks(report)) sentences.push_back(std::move(sentence));
  return sentences;
}

// "63,666 texts in 36.89 s: 1,725 texts/s, 36,083 tokens/s, bf16", and where they are.
std::string summary(const EmbedReport& report, const TerminalInfo& terminal) {
  const auto& progress = report.progress;
  const auto count = fmt::format("{} texts", with_thousands(progress.text_count));
  const auto first =
      wrapped(fmt::format("{} in {:.2f} s: {} texts/s, {} tokens/s, {}", count,
                          report.total_seconds, rate(progress.text_count, report.total_seconds),
                          rate(progress.token_count, report.total_seconds),
                          precision_name(report.precision)),
              {.width = terminal.width, .indent = 2});
  const auto second =
      wrapped(fmt::format("{} [{} x {}]{}", report.out.string(),
                          with_thousands(progress.resumed_count + progress.text_count), report.dim,
                          report.index.empty() ? "" : ", index " + report.index.string()),
              {.width = terminal.width, .indent = 2});
  // A narrow terminal may have broken the line within it; then nothing is coloured.
  const auto whole = first.starts_with(count) ? count.size() : 0;
  return styled_start(first, whole, kGood, terminal.has_color) + second;
}

}  // namespace

std::string describe_report(const EmbedReport& report, const TerminalInfo& terminal,
                            bool is_verbose) {
  const auto& progress = report.progress;
  const Wrap wrap{.width = terminal.width, .indent = 2};
  if (report.was_complete) {
    return wrapped(
        fmt::format("{} is complete already [{} x {}]: nothing to do", report.out.string(),
                    with_thousands(progress.resumed_count), report.dim),
        wrap);
  }
  auto out = summary(report, terminal);
  for (const auto& sentence : remarks_of(report)) out += wrapped(sentence, wrap);
  if (is_verbose) {
    out += wrapped(
        fmt::format("precision {}: {}", precision_name(report.precision), report.precision_reason),
        wrap);
  }
  out += "\n" + table_text(device_table(report), terminal) + device_warnings(progress, terminal);
  if (!is_verbose) return out;
  out += "\n" + table_text(time_table(report), terminal) + "\n";
  for (const auto& sentence : work_sentences(report)) out += wrapped(sentence, wrap);
  return out;
}

ProgressReading progress_reading(const EmbedProgress& progress) {
  // Rows are written in input order while batches are cut by length, so what is written comes in
  // jumps. What the devices have finished is what people wait for, and tokens are what it costs.
  ProgressReading reading;
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  for (const auto& device : progress.devices) {
    text_count += device.text_count;
    token_count += device.token_count;
    reading.lanes.push_back(
        {device.name, device.text_count, device.state == "ready" ? "" : device.state});
  }
  reading.phase = progress.phase;
  reading.counts = {{"texts", text_count}, {"tokens", token_count}};
  const bool is_known = progress.input_size_total && *progress.input_size_total > 0 &&
                        progress.input_size_read > 0 && progress.read_count > 0;
  if (!is_known) return reading;
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    // A retried text may be counted twice.
    return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
  };
  const auto total = *progress.input_size_total;
  if (progress.read_token_count > 0) {
    const auto resumed = std::min(progress.input_size_resumed, progress.input_size_read);
    const auto read = static_cast<double>(progress.input_size_read - resumed);
    const auto tokens_done = token_count + progress.resumed_token_count;
    const auto done = read * share(tokens_done, progress.read_token_count);
    reading.fraction =
        std::min(1.0, (static_cast<double>(resumed) + done) / static_cast<double>(total));
  } else {
    const auto done = progress.resumed_count + progress.bad_count + text_count;
    reading.fraction = share(progress.input_size_read, total) * share(done, progress.read_count);
  }
  return reading;
}

}  // namespace muster
