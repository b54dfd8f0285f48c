#include "dataset/output_record.h"

#include "base/hash.h"
#include "dataset/folder_fixture.h"
#include "dataset/vector_file.h"
#include "dataset/vector_writer.h"

namespace muster {
namespace {

class OutputRecordTest : public FolderTest {
 protected:
  OutputRecord record() const {
    OutputRecord record;
    record.model = "/models/m";
    record.model_hash = "00";
    record.precision = "bf16";
    record.pooling = "mean";
    record.normalize = true;
    record.length_max = 256;
    record.dim = 2;
    record.identity = {{"the model", "00"}};
    return record;
  }

  /// A whole output of three files: vectors, index, record.
  OutputRecord make(const std::string& name, const std::vector<float>& rows,
                    const std::string& index) const {
    const auto out = folder_ / name;
    auto writer = VectorWriter::open(out, *vector_format_of(out), 2, std::nullopt);
    EXPECT_TRUE((*writer)->append(rows));
    const auto whole = (*writer)->finish();
    auto made = record();
    made.row_count = whole->row_count;
    made.vectors_size = whole->size;
    made.vectors_hash = whole->hash;
    made.index_size = index.size();
    made.index_hash = hash_hex(index);
    write(name + ".index.jsonl", index);
    write(name + ".run.json", output_record_json(made));
    return made;
  }

  std::string refusal(const std::string& name) const {
    const auto read = read_output_record(folder_ / (name + ".run.json"));
    const auto checked = check_output(*read, folder_ / name);
    return checked ? "" : checked.error().message.substr(folder_.string().size() + 1);
  }
};

TEST_F(OutputRecordTest, ComesBackAsItWasWritten) {
  const auto made = make("x.npy", {1, 2}, "{}\n");
  const auto read = read_output_record(folder_ / "x.npy.run.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->model, "/models/m");
  EXPECT_EQ(read->pooling, "mean");
  EXPECT_TRUE(read->normalize);
  EXPECT_EQ(read->length_max, 256U);
  EXPECT_EQ(read->row_count, 1U);
  EXPECT_EQ(read->vectors_hash, made.vectors_hash);
  EXPECT_EQ(read->identity, made.identity);
}

TEST_F(OutputRecordTest, TellsWhichFileIsAnother) {
  for (const std::string ending : {".npy", ".safetensors", ".jsonl"}) {
    SCOPED_TRACE(ending);
    make("a" + ending, {1, 2, 3, 4}, "index of a\n");
    make("b" + ending, {1, 2, 3, 5}, "index of b\n");
    EXPECT_EQ(refusal("a" + ending), "");
    const auto vectors = read("a" + ending);
    write("a" + ending, read("b" + ending));
    EXPECT_EQ(refusal("a" + ending).rfind("a" + ending + ": not the file that ", 0), 0U);
    write("a" + ending, vectors);
    write("a" + ending + ".index.jsonl", "index of b\n");
    EXPECT_EQ(refusal("a" + ending).rfind("a" + ending + ".index.jsonl: not the file that ", 0),
              0U);
    write("a" + ending + ".index.jsonl", "index of a, longer\n");
    EXPECT_NE(refusal("a" + ending).find("19 bytes, not 11"), std::string::npos);
  }
}

TEST_F(OutputRecordTest, RepliesHaveOneFileAndNothingOfVectors) {
  OutputRecord made;
  made.kind = OutputKind::Replies;
  made.model = "/models/m.gguf";
  made.row_count = 2;
  made.vectors_size = 6;
  made.vectors_hash = hash_hex("a\nb\nc\n");
  made.record_count = 3;
  made.records_hash = "11";
  made.identity = {{"the model", "00"}};
  write("x.jsonl", "a\nb\nc\n");
  write("x.jsonl.run.json", output_record_json(made));
  const auto about = read("x.jsonl.run.json");
  EXPECT_EQ(about.find("dim"), std::string::npos) << about;
  const auto read_back = read_output_record(folder_ / "x.jsonl.run.json");
  ASSERT_TRUE(read_back) << read_back.error().message;
  EXPECT_EQ(read_back->kind, OutputKind::Replies);
  EXPECT_EQ(read_back->row_count, 2U);
  EXPECT_EQ(read_back->record_count, 3U);
  EXPECT_EQ(read_back->identity, made.identity);
  EXPECT_EQ(refusal("x.jsonl"), "");
  write("x.jsonl", "a\nb\nd\n");
  EXPECT_EQ(refusal("x.jsonl").rfind("x.jsonl: not the file that ", 0), 0U);
}

TEST_F(OutputRecordTest, RefusesWhatIsNoRecord) {
  const auto path = write("x.npy.run.json", "[1");
  EXPECT_EQ(read_output_record(path).error().message, path + ": not a JSON object");
  write("x.npy.run.json", R"({"model": 7})");
  EXPECT_EQ(read_output_record(path).error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(read_output_record(path).error().message,
            path + ": the field is missing or of another type: model");
  EXPECT_EQ(read_output_record(folder_ / "no.npy.run.json").error().kind, ErrorKind::NotFound);
}

TEST_F(OutputRecordTest, KnowsTheNamesOfAnEarlierVersion) {
  EXPECT_FALSE(has_names_of_earlier_version(folder_ / "x.npy"));
  write("x.index.jsonl", "");
  EXPECT_TRUE(has_names_of_earlier_version(folder_ / "x.npy"));
}

}  // namespace
}  // namespace muster
