#include "dataset/vector_file.h"

#include <cstring>

#include "dataset/folder_fixture.h"
#include "dataset/vector_writer.h"

namespace muster {
namespace {

std::string npy(const std::string& dict, std::size_t data_size) {
  std::string header = dict;
  header.resize(118 - 1, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" +
         std::string(data_size, '\0');
}

std::string safetensors(const std::string& json, std::size_t data_size) {
  std::string size(8, '\0');
  const std::uint64_t json_size = json.size();
  std::memcpy(size.data(), &json_size, sizeof json_size);
  return size + json + std::string(data_size, '\0');
}

class VectorFileTest : public FolderTest {
 protected:
  Error refusal(const std::string& name, const std::string& content) {
    const auto path = write(name, content);
    const auto file = VectorFile::open(path);
    EXPECT_FALSE(file) << content;
    auto error = file ? Error{} : file.error();
    EXPECT_TRUE(error.message.starts_with(path)) << error.message;
    return error;
  }
};

TEST_F(VectorFileTest, WhatTheWriterWroteIsReadBackBitForBit) {
  const std::vector<float> rows{0.1F, -0.0F, 1.17549435e-38F, 3.4028235e38F, 1e-45F, 16777217.0F};
  for (const std::string name : {"x.npy", "x.safetensors", "x.jsonl"}) {
    auto writer = VectorWriter::open(folder_ / name, *vector_format_of(name), 3, std::nullopt);
    ASSERT_TRUE((*writer)->append(rows));
    ASSERT_TRUE((*writer)->finish());
    const auto file = VectorFile::open(folder_ / name);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ((*file)->row_count(), 2U);
    ASSERT_EQ((*file)->dim(), 3U);
    EXPECT_EQ(std::memcmp((*file)->row(0).data(), rows.data(), 12), 0) << name;
    EXPECT_EQ(std::memcmp((*file)->row(1).data(), rows.data() + 3, 12), 0) << name;
  }
}

TEST_F(VectorFileTest, NpyVersions2And3HaveALongerLength) {
  for (const char version : {'\x02', '\x03'}) {
    std::string file = std::string("\x93NUMPY") + version + std::string("\0\x34\0\0\0", 5);
    file += "{\"shape\":(1,1),'fortran_order':False,'descr':'<f4'}\n";
    ASSERT_EQ(file.size(), 64U);  // 12 + 52 (0x34)
    EXPECT_TRUE(VectorFile::open(write("x.npy", file + std::string(4, '\0'))));
  }
}

TEST_F(VectorFileTest, OtherArraysAreUnsupportedAndNamed) {
  const auto message_of = [&](const std::string& dict, std::size_t size) {
    const auto error = refusal("x.npy", npy(dict, size));
    EXPECT_EQ(error.kind, ErrorKind::Unsupported);
    return error.message.substr(error.message.rfind(": ") + 2);
  };
  EXPECT_EQ(message_of("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }", 16),
            "the dtype is <f8");
  EXPECT_EQ(message_of("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", 8),
            "the order is Fortran's");
  EXPECT_EQ(message_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8),
            "the shape has 1 dimensions");
  EXPECT_EQ(message_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8),
            "the dtype is a record");
  EXPECT_EQ(message_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }", 0), "0");
}

TEST_F(VectorFileTest, BrokenNpyIsCorrupt) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  for (const auto& content :
       {std::string(), std::string("\x93NUMPY"), std::string("not numpy at all"), npy(good, 23),
        npy(good, 28), npy("{'descr': '<f4', 'fortran_order': False}", 24),
        npy("{'descr' '<f4'}", 24), npy("{'descr': '<f4", 24), npy(good + " x", 24),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }", 24),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0),
        npy(good, 24).substr(0, 60)}) {
    EXPECT_EQ(refusal("x.npy", content).kind, ErrorKind::Corrupt) << content;
  }
}

TEST_F(VectorFileTest, TheOnlyMatrixOfASafetensorsFileWillDo) {
  const std::string bias = R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string matrix = R"({"dtype":"F32","shape":[1,2],"data_offsets":[8,16]})";
  const auto padded = [](std::string json) {
    json.resize((json.size() + 7) / 8 * 8, ' ');
    return json;
  };
  EXPECT_TRUE(VectorFile::open(
      write("x.safetensors", safetensors(padded("{\"__metadata__\":{\"format\":\"pt\"}," + bias +
                                                ",\"m\":" + matrix + "}"),
                                         16))));
  EXPECT_EQ(refusal("x.safetensors",
                    safetensors(padded("{\"m\":" + matrix + ",\"n\":" + matrix + "}"), 16))
                .kind,
            ErrorKind::Unsupported);
  EXPECT_TRUE(VectorFile::open(
      write("x.safetensors",
            safetensors(padded("{\"m\":" + matrix + ",\"embeddings\":" + matrix + "}"), 16))));
  EXPECT_EQ(refusal("x.safetensors", safetensors(padded("{" + bias + "}"), 16)).kind,
            ErrorKind::Unsupported);
  EXPECT_EQ(refusal("x.safetensors", safetensors(padded("{\"m\":" + matrix + "}") + " ", 16)).kind,
            ErrorKind::Unsupported)
      << "the rows would not be aligned";
}

TEST_F(VectorFileTest, BrokenSafetensorsIsCorrupt) {
  const std::string tensor =
      R"({"embeddings":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}   )";
  ASSERT_EQ(tensor.size() % 4, 0U);
  ASSERT_TRUE(VectorFile::open(write("x.safetensors", safetensors(tensor, 8))));
  for (const auto& content :
       {std::string(), std::string(7, '\0'), safetensors(tensor, 8).substr(0, 20),
        safetensors(tensor, 7), std::string(8, '\xff') + tensor, safetensors("[]  ", 8),
        safetensors("{\"embeddings\":1} ", 8),
        safetensors(R"({"embeddings":{"dtype":"F32","shape":[1,3],"data_offsets":[0,8]}}   )", 8),
        safetensors(R"({"embeddings":{"dtype":"F32","shape":[1,2],"data_offsets":[8,0]}}   )", 8),
        safetensors(R"({"embeddings":{"dtype":"F32","shape":[1,-2],"data_offsets":[0,8]}}  )",
                    8)}) {
    EXPECT_EQ(refusal("x.safetensors", content).kind, ErrorKind::Corrupt) << content;
  }
}

TEST_F(VectorFileTest, BrokenJsonlNamesItsLine) {
  const auto message_of = [&](const std::string& content) {
    const auto error = refusal("x.jsonl", content);
    EXPECT_EQ(error.kind, ErrorKind::Corrupt);
    return error.message.substr(error.message.find("x.jsonl"));
  };
  EXPECT_EQ(message_of("[1,2]\n[1]\n"), "x.jsonl:2: 1 numbers where the first line has 2");
  EXPECT_EQ(message_of("[1,2]\n[1,x]\n"), "x.jsonl:2: not an array of numbers");
  EXPECT_EQ(message_of("[1,2"), "x.jsonl:1: not an array of numbers");
  EXPECT_EQ(message_of("[nan]"), "x.jsonl:1: not an array of numbers");
  EXPECT_EQ(message_of("[]"), "x.jsonl:1: not an array of numbers");
  EXPECT_EQ(message_of(""), "x.jsonl: no vector in it");
  EXPECT_TRUE(VectorFile::open(write("x.jsonl", " [ 1 , 2 ] \r\n[3,4e1]")));
}

TEST_F(VectorFileTest, AMissingFileIsNotFoundAndAnotherEndingInvalid) {
  EXPECT_EQ(VectorFile::open(folder_ / "no.npy").error().kind, ErrorKind::NotFound);
  EXPECT_EQ(VectorFile::open(folder_ / "no.txt").error().kind, ErrorKind::InvalidArgument);
}

}  // namespace
}  // namespace muster
