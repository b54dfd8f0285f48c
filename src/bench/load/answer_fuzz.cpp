#include <cstdlib>
#include <string>
#include <string_view>

#include "bench/load/answer_reader.h"
#include "bench/load/server_timing.h"

namespace {

std::string outcome(muster::AnswerReader& reader, std::string_view body, std::size_t piece) {
  for (std::size_t at = 0; at < body.size(); at += piece) {
    reader.on_body(body.substr(at, piece), static_cast<double>(at));
  }
  const auto facts = reader.finish();
  return facts.problem.value_or("") + facts.text + std::to_string(facts.token_times.size()) + " " +
         std::to_string(facts.input_tokens.value_or(-1)) + " " +
         std::to_string(facts.output_tokens.value_or(-1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto stream = muster::stream_answer_reader(true);
  const auto list = muster::list_answer_reader(muster::AnswerList::Vectors, 1);
  // The cuts must not matter, nor what was read before.
  for (auto* reader : {stream.get(), list.get()}) {
    const auto whole = outcome(*reader, body, 64 << 10);
    if (outcome(*reader, body, 3) != whole) std::abort();
  }
  const auto timing = muster::server_stages({{"Server-Timing", std::string(body)}});
  for (const auto& stage : timing.stages) {
    if (!(stage.second >= 0)) std::abort();
  }
  return 0;
}
