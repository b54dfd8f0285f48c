// The report is for somebody who wants to know whether it worked, how fast, and which device did
// what; where each second went is for those who ask. Rates are over the whole time, start included,
// because that is what the person has waited for; those of a device are over the time in which it
// could work.
#include "cli/embed_report.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "cli/corpus_view.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

CorpusWords words_of(const EmbedReport& report) {
  CorpusWords words;
  if (!report.index.empty()) return words;
  words.bad_entry = "its line says why";
  words.bad_entries = "their lines say why";
  return words;
}

std::string time_table(const EmbedReport& report, const TerminalInfo& terminal) {
  Table table({{"time of muster"}, {"seconds", Align::Right}, {"share", Align::Right}});
  const auto& time = report.time;
  const auto row = [&](const char* name, double part) {
    table.add_row({name, fmt::format("{:.2f}", part), percent_text(part, report.total_seconds)});
  };
  if (time.measure > 0) row("measure precisions", time.measure);
  row("read", time.read);
  row("wait for devices", time.wait);
  row("wait for the disk", time.wait_for_writer);
  row("other", time.other);
  row("tokenise, beside", time.tokenize);
  row("write, beside", time.write);
  return table.render(terminal.width, terminal.has_color);
}

// The devices' mean busy share, weighted by how long each was there.
std::string busy_share(const CorpusProgress& progress) {
  double busy = 0;
  double ready = 0;
  for (const auto& device : progress.devices) {
    if (!device.busy_seconds) continue;
    busy += *device.busy_seconds;
    ready += device.ready_seconds;
  }
  return percent_text(busy, ready);
}

// How long it took to begin, and whose CPU time it cost. What a server does beside is its own
// affair.
std::vector<std::string> work_sentences(const EmbedReport& report) {
  if (!report.worker_cpu_seconds) {
    return {fmt::format("the server was ready after {:.2f} s, first vector after {:.2f} s",
                        report.time.start, report.first_result_seconds),
            fmt::format("CPU time: {:.1f} s in muster; the server counts its own",
                        report.parent_cpu_seconds)};
  }
  const double workers = *report.worker_cpu_seconds;
  return {
      fmt::format("devices busy {}; first worker ready after {:.2f} s, first vector after "
                  "{:.2f} s",
                  busy_share(report.progress), report.time.start, report.first_result_seconds),
      fmt::format("CPU time: {:.1f} s in the workers, {:.1f} s in muster ({})", workers,
                  report.parent_cpu_seconds,
                  percent_text(report.parent_cpu_seconds, report.parent_cpu_seconds + workers))};
}

// "63,666 texts in 36.89 s: 1,725 texts/s, 36,083 tokens/s, bf16", and where they are. What was
// measured before is no work on them, and the next run has it already.
std::string summary(const EmbedReport& report, const TerminalInfo& terminal) {
  const auto& progress = report.progress;
  const auto count = fmt::format("{} texts", with_thousands(progress.text_count));
  const double work_seconds = report.total_seconds - report.time.measure;
  const auto first = wrapped(
      fmt::format("{} in {:.2f} s: {} texts/s, {} tokens/s, {}", count, work_seconds,
                  rate_text(progress.text_count, work_seconds),
                  rate_text(progress.token_count, work_seconds), precision_name(report.precision)),
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
  const auto words = words_of(report);
  auto out = summary(report, terminal);
  if (report.time.measure > 0) {
    out += wrapped(fmt::format("before that {:.2f} s of measuring which precision is fastest, once "
                               "for this model and processor",
                               report.time.measure),
                   wrap);
  }
  for (const auto& sentence : remarks_of(report, words)) out += wrapped(sentence, wrap);
  if (is_verbose) {
    out += wrapped(
        fmt::format("precision {}: {}", precision_name(report.precision), report.precision_reason),
        wrap);
  }
  out += "\n" + describe_devices(progress, words, terminal);
  if (!is_verbose) return out;
  out += "\n" + time_table(report, terminal) + "\n";
  for (const auto& sentence : work_sentences(report)) out += wrapped(sentence, wrap);
  return out;
}

ProgressReading progress_reading(const CorpusProgress& progress) {
  return corpus_reading(progress, "texts");
}

}  // namespace muster
