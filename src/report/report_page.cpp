// The page is put together from its sections in the order of their weight, each as long as there is
// room: verdicts and tables of everything first, then comparisons, then loads one by one.
#include "report/report_page.h"

#include <fmt/format.h>

#include <utility>

#include "report/html.h"
#include "report/page_style.h"
#include "report/sections.h"

namespace muster {
namespace {

// By it a report is known before it is written over.
constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\" data-made-by=\"muster bench report\">\n";
constexpr std::size_t kEndBytes = 2'000;  // what is said at the end, however much was left out
constexpr std::size_t kTitleBytesMost = 200;

// No script, no picture, no font and no style sheet from anywhere: the browser itself refuses them.
std::string page_begin(const std::string& title) {
  return fmt::format(
      "{}<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n"
      "<h1>{}</h1>\n",
      kHead, html_escaped(title), page_style(), html_escaped(title));
}

std::string page_end(const ReportInput& input, std::size_t left_out) {
  std::string html;
  if (left_out > 0) {
    html += fmt::format(
        "<p class=\"none\">{} more sections are left out, because a report takes at most {} KB; "
        "the tables above have every load and point. A report of fewer results has their "
        "plots.</p>\n",
        left_out, kReportBytesMost / 1000);
  }
  return html +
         fmt::format(
             "<p class=\"muted\">Under each figure stand the ends of its 95 % interval; "
             "\"?\": too few samples to know this end. Latency counts from the time at which "
             "a request was meant to be sent. Made by muster bench report, {}.</p>\n"
             "</main>\n</body>\n</html>\n",
             html_escaped(input.build));
}

std::vector<PowerRecording> recordings_of(const ReportInput& input, const ReportResult& result) {
  std::vector<PowerRecording> found;
  for (const auto& recording : input.recordings) {
    if (is_recording_of(recording, result, input.results)) found.push_back(recording);
  }
  return found;
}

// Adds sections while there is room; what is too long does not keep what follows out.
class PageBody {
 public:
  explicit PageBody(std::string begin) : html_(std::move(begin)) {}

  void add(const std::string& section) {
    if (html_.size() + section.size() + kEndBytes > kReportBytesMost) {
      ++left_out_;
    } else {
      html_ += section;
    }
  }

  const std::string& html() const { return html_; }
  std::size_t left_out() const { return left_out_; }

 private:
  std::string html_;
  std::size_t left_out_ = 0;
};

void add_result(PageBody& body, const ReportInput& input, std::size_t index) {
  const auto& result = input.results[index];
  const auto recordings = recordings_of(input, result);
  body.add(power_section(fmt::format("r{}-w", index), result, recordings));
  for (std::size_t i = 0; i < result.loads.size(); ++i) {
    body.add(load_section(fmt::format("r{}-{}", index, i), result, result.loads[i]));
  }
}

}  // namespace

Result<std::string> report_page(const ReportInput& input) {
  auto begin = page_begin(cut_text(input.title, kTitleBytesMost)) + summary_section(input.results) +
               points_section(input.results);
  if (begin.size() + kEndBytes > kReportBytesMost) {
    return Error{ErrorKind::ResourceExhausted,
                 fmt::format("the tables of {} results take {} KB, and a report takes at most {}: "
                             "name fewer results",
                             input.results.size(), begin.size() / 1000, kReportBytesMost / 1000)};
  }
  PageBody body(std::move(begin));
  body.add(side_by_side_section(input.results));
  body.add(sweep_section(input.results));
  body.add(latencies_section(input.results));
  body.add(differences_section(input.results, input.rule));
  body.add("<h2>Each result</h2>\n");
  for (std::size_t i = 0; i < input.results.size(); ++i) add_result(body, input, i);
  body.add("<h2>Where they come from</h2>\n");
  for (const auto& result : input.results) body.add(origin_section(result));
  return body.html() + page_end(input, body.left_out());
}

bool is_report_head(std::string_view head) { return head.starts_with(kHead); }

}  // namespace muster
