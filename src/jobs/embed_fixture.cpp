#include "jobs/embed_fixture.h"

#include <unistd.h>

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
  const EmbedEvents events{
      .on_progress = [this](const EmbedProgress& progress) { last_ = progress; },
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

}  // namespace muster
