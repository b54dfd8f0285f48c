#include "cli/doctor_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

DoctorReport report_of_two_devices() {
  DoctorReport report;
  report.machine = "here";
  report.checks = {
      {.name = "torch", .sentence = "torch 2.11.0 at /t"},
      {.name = "xid",
       .device = "cuda:0",
       .verdict = Verdict::Unfit,
       .sentence = "the driver reported XID 79 (2 times)",
       .advice = "reset it"},
      {.name = "ecc", .device = "cuda:0", .sentence = "nothing is wrong"},
      {.name = "ecc", .device = "cuda:1", .sentence = "nothing is wrong"},
      {.name = "compute", .device = "cuda:1", .sentence = "exact products: bf16 1.0 Tflop/s"},
      {.name = "open_files",
       .verdict = Verdict::Warning,
       .sentence = "too few files may be open: 70, and 88 are needed",
       .advice = "raise it"},
      {.name = "driver", .verdict = Verdict::NotApplicable, .sentence = "simulated"}};
  report.availability.requested = {"cuda:0", "cuda:1"};
  report.availability.available = {"cuda:1"};
  report.availability.unavailable = {"cuda:0"};
  report.availability.errors = {{"cuda:0", "the driver reported XID 79 (2 times)"}};
  report.recommended = {{SettingId::Devices, "cuda:1", "not fit, or not here: cuda:0"}};
  return report;
}

TEST(DoctorText, TheWorstComesFirstAndWhatIsWellIsShort) {
  EXPECT_EQ(doctor_text(report_of_two_devices(), {.width = 60}, false),
            "here: unfit (1 unfit, 1 warning, 1 not applicable, 4 well)\n"
            "\n"
            "unfit    cuda:0   xid: the driver reported XID 79 (2 times)\n"
            "                  do: reset it\n"
            "warning  machine  open_files: too few files may be open: 70,\n"
            "                  and 88 are needed\n"
            "                  do: raise it\n"
            "not applicable  machine: driver\n"
            "well     cuda:1   compute: exact products: bf16 1.0 Tflop/s\n"
            "well  machine: torch\n"
            "well  cuda:0, cuda:1: ecc\n"
            "\n"
            "recommended (muster doctor --recommend > muster.yaml):\n"
            "# not fit, or not here: cuda:0\n"
            "devices: 'cuda:1'\n");
}

TEST(DoctorText, ColoursTheWordsOfVerdictsAlone) {
  const auto report = report_of_two_devices();
  const auto text = doctor_text(report, {.width = 60, .has_color = true}, false);
  EXPECT_TRUE(text.starts_with("here: \x1b[0;1;38;5;202munfit\x1b[0m (1 unfit,")) << text;
  EXPECT_NE(text.find("\n\x1b[0;1;38;5;214mwarning\x1b[0m  machine  open_files: too few"),
            std::string::npos);
  EXPECT_NE(text.find("\n\x1b[0;1;38;5;36mwell\x1b[0m  machine: torch\n"), std::string::npos);
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const auto escape = std::min(text.find('\x1b', at), text.size());
    plain += text.substr(at, escape - at);
    at = escape == text.size() ? escape : text.find('m', escape) + 1;
  }
  EXPECT_EQ(plain, doctor_text(report, {.width = 60}, false)) << "no text differs";
}

TEST(DoctorText, IsNotWrappedInAPipe) {
  EXPECT_NE(doctor_text(report_of_two_devices(), {.width = kUnboundedWidth}, false)
                .find("open_files: too few files may be open: 70, and 88 are needed\n"),
            std::string::npos);
}

TEST(DoctorText, AllShowsEverySentence) {
  const auto text = doctor_text(report_of_two_devices(), {.width = 120}, true);
  for (const auto& check : report_of_two_devices().checks) {
    EXPECT_NE(text.find(check.name + ": " + check.sentence), std::string::npos) << text;
  }
}

TEST(DoctorText, WhatCameFromOutsideCannotMoveTheCursor) {
  DoctorReport report;
  report.machine = "here";
  report.checks = {{.name = "processes",
                    .device = "cuda:0",
                    .verdict = Verdict::Warning,
                    .sentence = "\x1b[2Jevil"}};
  EXPECT_EQ(doctor_text(report, {.width = 80}, false).find('\x1b'), std::string::npos);
}

TEST(DoctorJson, HoldsTheReport) {
  const auto json = nlohmann::json::parse(doctor_json(report_of_two_devices()));
  EXPECT_EQ(json["verdict"], "unfit");
  EXPECT_EQ(json["exit_code"], 21);
  EXPECT_EQ(json["checks"].size(), 7U);
  EXPECT_TRUE(json["checks"][0]["device"].is_null());
  EXPECT_EQ(json["checks"][1]["advice"], "reset it");
  EXPECT_EQ(json["availability"]["requested"].size(), 2U);
  EXPECT_EQ(json["availability"]["all_available"], false);
  EXPECT_EQ(json["availability"]["errors"]["cuda:0"], "the driver reported XID 79 (2 times)");
  EXPECT_EQ(json["recommended"], "# not fit, or not here: cuda:0\ndevices: 'cuda:1'\n");
}

}  // namespace
}  // namespace muster
