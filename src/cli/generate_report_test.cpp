#include "cli/generate_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "terminal/terminal_info.h"

namespace muster {
namespace {

std::string unbroken_text(const GenerateOptions& options, const GenerateReport& report) {
  return generate_report_text(options, report, kUnboundedWidth);
}

GenerateReport whole_report() {
  GenerateReport report;
  report.prompt_tokens = 37;
  report.end = GenerateEnd::StopToken;
  report.reply_tokens = 5;
  report.decoder =
      GenerateDecoder{.weights_bytes = 90'000'000, .thread_count = 4, .decoder_class = "decoder.1"};
  report.times =
      GenerateTimes{.first_token_seconds = 1.5, .prefill_seconds = 0.25, .decode_seconds = 2};
  report.cache_bytes = 2'000'000;
  report.worker_bytes = 120'000'000;
  return report;
}

TEST(GenerateReportText, TellsWhatAReplyTook) {
  EXPECT_EQ(
      unbroken_text({}, whole_report()),
      "5 tokens after 37 of prompt: 2.0 tokens/s; first token after 1.50 s, 0.25 s of it for "
      "the prompt\ncpu:0, 4 threads, precision own, decoder.1: weights 90 MB, keys and values "
      "2 MB, worker 120 MB\n");
  GenerateOptions narrow;
  narrow.kv_cache_dtype = KvCacheDtype::Int8;
  EXPECT_TRUE(unbroken_text(narrow, whole_report())
                  .ends_with("keys and values in int8 2 MB, worker 120 MB\n"));
  GenerateOptions drawn;
  drawn.sampling.temperature = 1;
  drawn.sampling.seed = 7;
  EXPECT_TRUE(unbroken_text(drawn, whole_report()).ends_with("worker 120 MB; seed 7\n"));
}

// Whoever reads a text that breaks off looks for why.
TEST(GenerateReportText, TellsWhatCutAReplyShort) {
  const auto first_line = [](GenerateEnd end, std::uint32_t token_limit) {
    GenerateOptions options;
    options.token_limit = token_limit;
    auto report = whole_report();
    report.end = end;
    const auto text = unbroken_text(options, report);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_TRUE(first_line(GenerateEnd::StopString, 5).ends_with("for the prompt"));
  EXPECT_TRUE(first_line(GenerateEnd::Length, 5).ends_with("; max-tokens is reached"));
  EXPECT_TRUE(first_line(GenerateEnd::Length, 6).ends_with("; the context has no room for more"));
  EXPECT_TRUE(first_line(GenerateEnd::Interrupted, 6).ends_with("; stopped"));
}

// A table of embeddings is read where it lies: muster plan counts it, and whoever compares the two
// would look for what is missing.
TEST(GenerateReportText, WeightsAreThoseOfAPlan) {
  auto report = whole_report();
  report.decoder->unpacked_bytes = 31'000'000;
  EXPECT_NE(unbroken_text({}, report)
                .find(": weights 121 MB (90 MB packed, the rest as in the file), keys and values "),
            std::string::npos);
  const auto json = nlohmann::json::parse(generate_report_json({}, report, ""));
  EXPECT_EQ(json["weights_bytes"], 90'000'000);
  EXPECT_EQ(json["unpacked_weights_bytes"], 31'000'000);
}

// Unbroken the lines have 96 and 94 columns.
TEST(GenerateReportText, BreaksItsLinesBetweenWords) {
  EXPECT_EQ(generate_report_text({}, whole_report(), 80),
            "5 tokens after 37 of prompt: 2.0 tokens/s; first token after 1.50 s, 0.25 s of\n"
            "  it for the prompt\n"
            "cpu:0, 4 threads, precision own, decoder.1: weights 90 MB, keys and values 2 MB,\n"
            "  worker 120 MB\n");
}

TEST(GenerateReportText, TellsWhyThePrecisionWasTaken) {
  GenerateOptions options;
  options.precision_reason = "measured: bf16 9.0 tokens/s; own 20.0 tokens/s";
  EXPECT_TRUE(unbroken_text(options, whole_report())
                  .ends_with("worker 120 MB\nprecision own: measured: bf16 9.0 tokens/s; own 20.0 "
                             "tokens/s\n"));
  const auto json = nlohmann::json::parse(generate_report_json(options, whole_report(), ""));
  EXPECT_EQ(json["precision_reason"], options.precision_reason);
  EXPECT_FALSE(nlohmann::json::parse(generate_report_json({}, whole_report(), ""))
                   .contains("precision_reason"));
}

TEST(GenerateReportText, LeavesOutWhatWasNotMeasured) {
  GenerateReport report;
  report.end = GenerateEnd::Interrupted;
  report.prompt_tokens = 37;
  EXPECT_EQ(unbroken_text({}, report), "stopped before the first token\n");
  report.decoder = whole_report().decoder;
  EXPECT_EQ(
      unbroken_text({}, report),
      "stopped before the first token\ncpu:0, 4 threads, precision own, decoder.1: weights 90 "
      "MB\n");
  report.end = GenerateEnd::StopToken;  // the first token ends the reply
  EXPECT_TRUE(unbroken_text({}, report).starts_with("0 tokens after 37 of prompt\ncpu:0"));
}

TEST(GenerateReportJson, HasNoKeysOfWhatWasNotMeasured) {
  GenerateReport report;
  report.end = GenerateEnd::Interrupted;
  report.prompt_tokens = 37;
  const auto little = nlohmann::json::parse(generate_report_json({}, report, ""));
  EXPECT_EQ(little["finish_reason"], "interrupted");
  EXPECT_EQ(little["prompt_tokens"], 37);
  EXPECT_EQ(little["kv_cache_dtype"], "auto");
  auto stopped = whole_report();
  stopped.end = GenerateEnd::StopString;
  const auto all = nlohmann::json::parse(generate_report_json({}, stopped, "so"));
  EXPECT_EQ(all["finish_reason"], "stop") << "as the server says it";
  EXPECT_FALSE(all.contains("seed")) << "nothing is drawn at temperature 0";
  GenerateOptions drawn;
  drawn.sampling.temperature = 1;
  drawn.sampling.seed = 7;
  EXPECT_EQ(nlohmann::json::parse(generate_report_json(drawn, stopped, ""))["seed"], 7);
  for (const auto* key : {"decoder_class", "threads", "first_token_seconds", "prefill_seconds",
                          "decode_seconds", "weights_bytes", "cache_bytes", "worker_bytes"}) {
    EXPECT_FALSE(little.contains(key)) << key;
    EXPECT_TRUE(all.contains(key)) << key;
  }
}

}  // namespace
}  // namespace muster
