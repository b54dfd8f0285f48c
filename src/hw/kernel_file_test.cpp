#include "hw/kernel_file.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "hw/testdata/tree.h"

namespace muster {
namespace {

class KernelFileTest : public ::testing::Test {
 protected:
  TestTree tree_;
  CountingWatch watch_;
  DeviceSample sample_;
};

TEST_F(KernelFileTest, ReadsTheNewContentOfTheSameFile) {
  tree_.write("value", "12\n");
  KernelFile file("read value", tree_.root() / "value");
  EXPECT_EQ(file.read(watch_, sample_), 0);
  EXPECT_EQ(file.text(), "12\n");
  tree_.write("value", "7\n");
  EXPECT_EQ(file.read(watch_, sample_), 0);
  EXPECT_EQ(file.text(), "7\n");
  EXPECT_EQ(watch_.last, "read value");
  EXPECT_EQ(watch_.left, 2);
  EXPECT_EQ(sample_.call_count, 2U);
}

TEST_F(KernelFileTest, ReadsOnWhereOnePieceEnds) {
  const std::string content(300'000, 'x');
  tree_.write("long", content + "\n");
  KernelFile file("read long", tree_.root() / "long", 1 << 20);
  EXPECT_EQ(file.read(watch_, sample_), 0);
  EXPECT_EQ(file.text(), content + "\n");
}

TEST_F(KernelFileTest, TellsTheErrnoAndComesBackWithTheFile) {
  KernelFile file("read value", tree_.root() / "value");
  EXPECT_EQ(file.read(watch_, sample_), ENOENT);
  EXPECT_TRUE(file.text().empty());
  tree_.write("value", "1\n");
  EXPECT_EQ(file.read(watch_, sample_), 0);
  std::filesystem::create_directory(tree_.root() / "folder");
  KernelFile folder("read folder", tree_.root() / "folder");
  EXPECT_EQ(folder.read(watch_, sample_), EISDIR);
}

TEST_F(KernelFileTest, StopsAtItsBound) {
  tree_.write("long", std::string(9000, 'x'));
  KernelFile file("read long", tree_.root() / "long");
  EXPECT_EQ(file.read(watch_, sample_), EFBIG);
  EXPECT_TRUE(file.text().empty());
}

TEST(LeadingNumber, ReadsWholeNumbersOnly) {
  EXPECT_EQ(leading_number(" 42 kB\n"), 42);
  EXPECT_EQ(leading_number("-1\n"), -1);
  EXPECT_EQ(leading_number("132Mhz *"), 132);
  EXPECT_FALSE(leading_number("max"));
  EXPECT_FALSE(leading_number(""));
  EXPECT_FALSE(leading_number("99999999999999999999"));
}

TEST(HexNumber, TakesBothForms) {
  EXPECT_EQ(hex_number("0x1002\n"), 0x1002U);
  EXPECT_EQ(hex_number("2e2b9c4f1c3d0a00"), 0x2e2b9c4f1c3d0a00U);
  EXPECT_FALSE(hex_number("12 34"));
  EXPECT_FALSE(hex_number("0x"));
}

TEST(IsNotOffered, TellsWhatIsMissingFromWhatFailed) {
  EXPECT_TRUE(is_not_offered(EOPNOTSUPP));
  EXPECT_TRUE(is_not_offered(ENOENT));
  EXPECT_FALSE(is_not_offered(EACCES));
  EXPECT_FALSE(is_not_offered(EBUSY));
}

}  // namespace
}  // namespace muster
