#include "jobs/embed_fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "dataset/vector_file.h"

namespace muster {

EmbedFixture::EmbedFixture(const std::string& name)
    : folder_(std::filesystem::path(testing::TempDir()) /
              (name + "." + std::to_string(::getpid()))) {
  std::filesystem::create_directories(folder_);
  options_.out = folder_ / "out.npy";
}

EmbedFixture::~EmbedFixture() { std::filesystem::remove_all(folder_); }

void EmbedFixture::write_input(const std::string& name, const std::string& content) {
  std::ofstream(folder_ / name) << content;
  options_.input.inputs = {(folder_ / name).string()};
}

Result<EmbedReport> EmbedFixture::run(const std::function<bool()>& cancelled) {
  const CorpusEvents events{
      .on_progress =
          [this](const CorpusProgress& progress) {
            if (phases_.empty() || phases_.back() != progress.phase) {
              phases_.push_back(progress.phase);
            }
            if (!first_) first_ = progress;
            last_ = progress;
          },
      .on_notice = [this](const std::string& notice) { notices_ += notice + "\n"; }};
  return embed_corpus(options_, events, clock_, cancelled);
}

bool EmbedFixture::nothing_is_final() const {
  return !std::filesystem::exists(options_.out) &&
         !std::filesystem::exists(index_path_of(options_.out));
}

std::string EmbedFixture::output_bytes() const {
  return *read_file(options_.out) + *read_file(index_path_of(options_.out));
}

EchoEmbedFixture::EchoEmbedFixture(const std::string& name, std::uint32_t device_count)
    : EmbedFixture(name) {
  ::setenv("ZERO_WORKER", "echo", 1);
  options_.model = std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny";
  options_.devices.resize(device_count);
  for (std::uint32_t i = 0; i < device_count; ++i) options_.devices[i].index = i;
  options_.worker_program = std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker";
  options_.cache_folder = folder_ / "cache";
  options_.batch_tokens = 256;  // little is in the hands of a worker that stops
}

EchoEmbedFixture::~EchoEmbedFixture() { ::unsetenv("ZERO_WORKER"); }

}  // namespace muster
