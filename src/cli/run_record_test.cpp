#include "cli/run_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace muster {
namespace {

class RunRecordTest : public testing::Test {
 protected:
  RunRecordTest()
      : out_(std::filesystem::path(testing::TempDir()) /
             ("muster_record_" + std::to_string(getpid()) + ".npy")) {
    record_ = out_;
    record_.replace_extension(".run.json");
  }
  ~RunRecordTest() override { std::filesystem::remove(record_); }

  void write(const std::string& text) const { std::ofstream(record_) << text; }

  std::filesystem::path out_;
  std::filesystem::path record_;
};

TEST_F(RunRecordTest, ReadsWhatEmbedWrote) {
  write(R"({"model": "/models/m", "model_hash": "00", "precision": "bf16", "pooling": "mean",
            "normalize": true, "prompt_name": "", "length_max": 256, "dim": 384, "rows": 9})");
  const auto record = read_run_record(out_);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->model, "/models/m");
  EXPECT_EQ(record->precision, "bf16");
  EXPECT_EQ(record->pooling, "mean");
  EXPECT_TRUE(record->normalize);
  EXPECT_EQ(record->length_max, 256U);
}

TEST_F(RunRecordTest, SaysHowToGoOnWithoutIt) {
  const auto record = read_run_record(out_);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(record.error().message, record_.string() +
                                        " would say which model made these vectors, and it is "
                                        "missing: name the model with --model");
}

TEST_F(RunRecordTest, RefusesWhatIsNoRecord) {
  write("[1");
  EXPECT_EQ(read_run_record(out_).error().message, record_.string() + ": not a JSON object");
  write(R"({"model": 7})");
  EXPECT_EQ(read_run_record(out_).error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(read_run_record(out_).error().message,
            record_.string() + ": the field is missing or of another type: model");
}

}  // namespace
}  // namespace muster
