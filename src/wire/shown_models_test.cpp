#include "wire/shown_models.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::string_literals::operator""s;

TEST(ShownModels, WritesOverItsArgumentAndNoFurther) {
  std::string memory = "............!";
  memory[12] = '\0';
  memory += "next";
  ShownModels shown(memory.data());
  shown.add(1, "/models/bge");
  EXPECT_EQ(memory, "bge\0\0\0\0\0\0\0\0\0\0next"s);
  shown.add(2, "/models/a-long-name");
  EXPECT_EQ(memory, "bge,a-long-n\0next"s) << "the rest has no room";
  shown.remove(1);
  EXPECT_EQ(memory, "a-long-name\0\0next"s);
  shown.remove(2);
  EXPECT_EQ(memory, "\0\0\0\0\0\0\0\0\0\0\0\0\0next"s);
}

TEST(ShownModels, NeedsNoArgument) {
  ShownModels shown(nullptr);
  shown.add(1, "/models/bge");
}

TEST(ShownModelName, IsThatOfTheFolderOrOfTheRepository) {
  EXPECT_EQ(shown_model_name("/models/all-MiniLM-L6-v2"), "all-MiniLM-L6-v2");
  EXPECT_EQ(shown_model_name("/models/all-MiniLM-L6-v2/"), "all-MiniLM-L6-v2");
  EXPECT_EQ(shown_model_name("/models/SmolLM2.Q4_1.gguf"), "SmolLM2.Q4_1.gguf");
  EXPECT_EQ(
      shown_model_name("/hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/c9745ed1"),
      "all-MiniLM-L6-v2");
  EXPECT_EQ(shown_model_name("/photos/snapshots/mine"), "mine");
}

}  // namespace
}  // namespace muster
