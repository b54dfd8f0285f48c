// Any text is a result or an Error; what is read can be drawn, and no byte of it becomes a script.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "report/report_page.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto result = muster::read_report_result(text, "<script>");
  if (!result) return 0;
  muster::ReportInput input;
  input.results.push_back(*result);
  input.results.push_back(std::move(*result));
  const auto page = muster::report_page(input);
  if (page &&
      (page->size() > muster::kReportBytesMost || page->find("<script") != std::string::npos)) {
    __builtin_trap();
  }
  return 0;
}
