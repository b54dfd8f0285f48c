#include "dataset/vector_writer.h"

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/full_disk_fixture.h"
#include "base/hash.h"
#include "dataset/folder_fixture.h"

namespace muster {
namespace {

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class VectorWriterTest : public FolderTest {
 protected:
  std::string written(VectorFormat format, const std::vector<float>& rows, std::uint32_t dim) {
    auto writer = VectorWriter::open(folder_ / "part", format, dim, std::nullopt);
    EXPECT_TRUE(writer);
    EXPECT_TRUE((*writer)->append(rows));
    EXPECT_TRUE((*writer)->finish());
    return read("part");
  }
};

TEST_F(VectorWriterTest, NpyHasTheHeaderOfFormat10) {
  // NEP 1: magic, version 1.0, little-endian length, a Python dict, spaces, a line feed; 128 = 2
  // x 64.
  std::string header("\x93NUMPY\x01\x00\x76\x00", 10);
  header += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header += std::string(127 - header.size(), ' ') + "\n";
  EXPECT_EQ(written(VectorFormat::Npy, {1, 2, 3, 4, 5, 6}, 3),
            header + bytes_of({1, 2, 3, 4, 5, 6}));
}

TEST_F(VectorWriterTest, SafetensorsHasOneTensorNamedEmbeddings) {
  std::string header("\x78\0\0\0\0\0\0\0", 8);  // 120 bytes of JSON
  header += R"({"embeddings":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  header += std::string(128 - header.size(), ' ');
  EXPECT_EQ(written(VectorFormat::Safetensors, {1, 2, 3, 4, 5, 6}, 3),
            header + bytes_of({1, 2, 3, 4, 5, 6}));
}

TEST_F(VectorWriterTest, JsonlHoldsTheShortestFormThatReadsBack) {
  EXPECT_EQ(written(VectorFormat::Jsonl, {0.1F, -1, 1e-7F, 16777216, -0.0F, 3.4028235e38F}, 3),
            "[0.1,-1,1e-07]\n[16777216,-0,3.4028235e+38]\n");
}

TEST_F(VectorWriterTest, AnObjectHasTheRowBehindItsMembers) {
  auto writer = *VectorWriter::open(folder_ / "part", VectorFormat::Jsonl, 2, std::nullopt);
  ASSERT_TRUE(writer->append_object(R"("id":"a7",)", std::vector<float>{0.5F, -1}));
  ASSERT_TRUE(writer->append_object("", std::vector<float>{2, 3}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(writer->finish()->row_count, 2U);
  EXPECT_EQ(read("part"), "{\"id\":\"a7\",\"embedding\":[0.5,-1]}\n{\"embedding\":[2,3]}\n");
  EXPECT_FALSE(writer->append_object("", std::vector<float>{nan, 3}));
}

TEST_F(VectorWriterTest, AResumedFileEqualsOneThatWasWrittenInOneGo) {
  const std::vector<float> rows{1, 2, 3, 4, 5, 6, 7, 8};
  for (const auto format : {VectorFormat::Npy, VectorFormat::Safetensors, VectorFormat::Jsonl}) {
    const auto whole = written(format, rows, 2);
    auto first = VectorWriter::open(folder_ / "part", format, 2, std::nullopt);
    ASSERT_TRUE((*first)->append(std::span(rows).first(4)));
    const auto place = (*first)->sync();
    ASSERT_TRUE(place);
    EXPECT_EQ(place->row_count, 2U);
    EXPECT_EQ(place->size, std::filesystem::file_size(folder_ / "part"));
    EXPECT_EQ(place->rows_hash, hash_hex(read("part").substr(vector_header_size(format))));
    // Rows after the last sync: written, and lost to the journal.
    ASSERT_TRUE((*first)->append(std::span(rows).subspan(4, 2)));
    ASSERT_TRUE((*first)->sync());
    first->reset();
    auto second = VectorWriter::open(folder_ / "part", format, 2, *place);
    ASSERT_TRUE(second);
    ASSERT_TRUE((*second)->append(std::span(rows).subspan(4)));
    const auto end = (*second)->sync();
    EXPECT_EQ(end->rows_hash, hash_hex(read("part").substr(place->size)));
    ASSERT_TRUE((*second)->finish());
    EXPECT_EQ(read("part"), whole);
  }
}

TEST_F(VectorWriterTest, ResumingAFileThatIsTooShortIsCorrupt) {
  write("part", std::string(100, ' '));
  const VectorWriter::Place place{.row_count = 1, .size = 136, .rows_hash = ""};
  EXPECT_EQ(VectorWriter::open(folder_ / "part", VectorFormat::Npy, 2, place).error().kind,
            ErrorKind::Corrupt);
  write("part", std::string(200, ' '));
  EXPECT_TRUE(VectorWriter::open(folder_ / "part", VectorFormat::Npy, 2, place));
  EXPECT_EQ(VectorWriter::open(folder_ / "part", VectorFormat::Npy, 1, place).error().kind,
            ErrorKind::Corrupt);
  EXPECT_EQ(VectorWriter::open(folder_ / "no", VectorFormat::Npy, 2, place).error().kind,
            ErrorKind::NotFound);
}

TEST_F(VectorWriterTest, ValuesThatAreNotFiniteAreRefusedWithTheirRow) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    auto writer = VectorWriter::open(folder_ / "part", VectorFormat::Npy, 2, std::nullopt);
    ASSERT_TRUE((*writer)->append(std::vector<float>{1, 2}));
    const auto refused = (*writer)->append(std::vector<float>{1, 2, 3, bad});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
    EXPECT_TRUE(refused.error().message.ends_with("a value is not finite: row 2"));
  }
}

TEST_F(VectorWriterTest, AFullDiskIsResourceExhaustedAndStaysSo) {
  std::optional<FullDisk> disk(std::in_place, 3 << 20);
  auto writer = VectorWriter::open(folder_ / "part", VectorFormat::Npy, 256, std::nullopt);
  const std::vector<float> rows(256 * 4096, 0.5F);  // 4 MiB
  const auto refused = (*writer)->append(rows);
  disk.reset();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_NE(refused.error().message.find((folder_ / "part").string()), std::string::npos);
  EXPECT_EQ((*writer)->sync().error().message, refused.error().message);
  EXPECT_FALSE((*writer)->finish());
}

TEST_F(VectorWriterTest, ADeviceWithoutSpaceIsNamed) {
  auto writer = VectorWriter::open("/dev/full", VectorFormat::Jsonl, 1, std::nullopt);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->append(std::vector<float>{1}));
  const auto refused = (*writer)->sync();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(refused.error().message, "/dev/full: cannot write: No space left on device");
}

TEST(VectorFormatOf, TheEndingDecides) {
  EXPECT_EQ(*vector_format_of("a.b/x.npy"), VectorFormat::Npy);
  EXPECT_EQ(*vector_format_of("x.safetensors"), VectorFormat::Safetensors);
  EXPECT_EQ(*vector_format_of("x.jsonl"), VectorFormat::Jsonl);
  EXPECT_EQ(vector_format_of("x.txt").error().message,
            "x.txt: vectors are written as .npy, .safetensors or .jsonl");
}

}  // namespace
}  // namespace muster
