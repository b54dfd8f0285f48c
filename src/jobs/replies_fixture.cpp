#include "jobs/replies_fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "coordinator/decoder_fixture.h"

namespace muster {

RepliesFixture::RepliesFixture(const std::string& name, std::uint32_t device_count)
    : folder_(std::filesystem::path(testing::TempDir()) /
              (name + "." + std::to_string(::getpid()))),
      files_(folder_ / "out.jsonl", OutputKind::Replies) {
  std::filesystem::create_directories(folder_);
  write_counting_decoder(folder_ / "model");
  options_.source = folder_ / "model";
  options_.out = files_.out;
  options_.input.takes_messages = true;
  options_.memory.free_bytes = std::uint64_t{1} << 30;
  options_.devices.resize(device_count);
  for (std::uint32_t i = 0; i < device_count; ++i) options_.devices[i].index = i;
  options_.worker_program = counting_worker();
  order("");
}

RepliesFixture::~RepliesFixture() {
  ::unsetenv("COUNTING_WORKER");
  std::filesystem::remove_all(folder_);
}

void RepliesFixture::write_input(const std::string& name, const std::string& content) {
  std::ofstream(folder_ / name) << content;
  options_.input.inputs = {(folder_ / name).string()};
}

void RepliesFixture::order(const std::string& words) {
  ::setenv("COUNTING_WORKER", words.c_str(), 1);
}

Result<RepliesReport> RepliesFixture::run(const std::function<bool()>& cancelled) {
  last_ = {};
  const CorpusEvents events{
      .on_progress =
          [this](const CorpusProgress& progress) {
            if (phases_.empty() || phases_.back() != progress.phase) {
              phases_.push_back(progress.phase);
            }
            last_ = progress;
          },
      .on_notice = [this](const std::string& notice) { notices_ += notice + "\n"; }};
  return generate_replies(options_, events, clock_, cancelled);
}

RepliesReport RepliesFixture::run_well() {
  const auto report = run();
  EXPECT_TRUE(report) << report.error().message << "\n" << notices_;
  return report ? *report : RepliesReport{};
}

std::string RepliesFixture::error_of_run() {
  const auto report = run();
  EXPECT_FALSE(report);
  return report ? "" : report.error().message;
}

std::string RepliesFixture::undisturbed_bytes() {
  run_well();
  auto bytes = output();
  std::filesystem::remove(files_.out);
  std::filesystem::remove(files_.about);
  return bytes;
}

std::string RepliesFixture::output() const {
  const auto content = read_file(options_.out);
  EXPECT_TRUE(content) << content.error().message;
  return content ? *content : "";
}

std::uint64_t RepliesFixture::computed_count() const {
  std::uint64_t count = 0;
  for (const auto& device : last_.devices) count += device.text_count;
  return count;
}

std::string counted_reply(char last, std::size_t limit) {
  const std::vector<std::string> tokens{"a", "b", "c", "d", "e", "f", "g",    "h",    "i", "j",
                                        "k", "l", "m", "n", "o", "p", "q",    "r",    "s", "t",
                                        "u", "v", "w", "x", "y", "z", "\xc3", "\xa9", "0", "1",
                                        "2", "3", "4", "5", "6", "7", "8"};
  std::string reply;
  for (auto i = static_cast<std::size_t>(last - 'a') + 1; i < tokens.size() && limit > 0; ++i) {
    reply += tokens[i];
    --limit;
  }
  return reply;
}

}  // namespace muster
