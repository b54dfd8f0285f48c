#include "config/values.h"

#include <gtest/gtest.h>

#include "config/config.h"

namespace muster {
namespace {

std::string checked(SettingId id, std::string_view value) {
  const auto text = check_value(setting_of(id), value, "it");
  return text ? *text : text.error().message;
}

TEST(SettingValues, HaveOneFormOfATime) {
  EXPECT_EQ(checked(SettingId::QueueBudget, "2s"), "2s");
  EXPECT_EQ(checked(SettingId::QueueBudget, "1.5 s"), "1500ms");
  EXPECT_EQ(checked(SettingId::QueueBudget, "2m"), "120s");
  EXPECT_EQ(checked(SettingId::CanaryInterval, "0"), "0s");
  const auto* wrong = "it must be a time such as 500ms, 2s or 1m, from 1ms to 3600s: ";
  for (const std::string text : {"2", "2sec", "-1s", "s", "inf", "2h", "0", "1e99s"}) {
    EXPECT_EQ(checked(SettingId::QueueBudget, text), wrong + ("\"" + text + "\""));
  }
}

TEST(SettingValues, HaveOneFormOfASize) {
  EXPECT_EQ(checked(SettingId::CacheSize, "256MiB"), "256MiB");
  EXPECT_EQ(checked(SettingId::CacheSize, "1048576"), "1MiB");
  EXPECT_EQ(checked(SettingId::CacheSize, "0.5GiB"), "512MiB");
  EXPECT_EQ(checked(SettingId::CacheSize, "1GB"), "1000000000");
  EXPECT_EQ(checked(SettingId::CacheSize, "0"), "0");
  EXPECT_EQ(checked(SettingId::MaxBodyBytes, "2GiB"),
            "it must be a size such as 64KiB, 256MiB or 1GB, from 1KiB to 1GiB: \"2GiB\"");
  EXPECT_EQ(checked(SettingId::MaxBodyBytes, "1 mb"),
            "it must be a size such as 64KiB, 256MiB or 1GB, from 1KiB to 1GiB: \"1 mb\"");
}

TEST(SettingValues, HaveOneFormOfAShare) {
  EXPECT_EQ(checked(SettingId::MemoryThreshold, "80%"), "0.8");
  EXPECT_EQ(checked(SettingId::MemoryThreshold, "1"), "1");
  for (const std::string text : {"0", "80", "101%", "nan", ""}) {
    EXPECT_NE(checked(SettingId::MemoryThreshold, text).find("it must"), std::string::npos) << text;
  }
}

TEST(SettingValues, HaveOneFormOfAMap) {
  EXPECT_EQ(checked(SettingId::DeviceWeights, "cuda:0=2, cuda:1 = 1"), "cuda:0=2,cuda:1=1");
  EXPECT_EQ(checked(SettingId::TaskTypes, "query=cuda:0;document=cuda:1,cuda:2"),
            "query=cuda:0;document=cuda:1,cuda:2");
  EXPECT_EQ(checked(SettingId::TaskTypes, "query=cuda:0,document=cuda:1,cuda:2"),
            "query=cuda:0;document=cuda:1,cuda:2");
  EXPECT_EQ(checked(SettingId::DeviceWeights, "cuda:0"),
            "it must be entries of the form name=value, with commas between: \"cuda:0\"");
  EXPECT_EQ(checked(SettingId::DeviceWeights, "a=1,a=2"), "it names a twice: \"a=1,a=2\"");
}

TEST(SettingValues, HaveOneFormOfFiles) {
  EXPECT_EQ(checked(SettingId::Search, "notes.npy, faq=data/x.npy"),
            "notes=notes.npy,faq=data/x.npy");
  EXPECT_EQ(checked(SettingId::Search, "ab=data/a=b.npy"), "ab=data/a=b.npy");
  EXPECT_EQ(checked(SettingId::Search, "a.npy,b/a.npy"),
            "it names a twice: NAME=PATH gives another name: \"a.npy,b/a.npy\"");
  for (const std::string text : {",", "a.npy,", "=a.npy", "a=", "data/a=b.npy"}) {
    EXPECT_EQ(
        checked(SettingId::Search, text),
        "it must be files of the form NAME=PATH or PATH, with commas between: \"" + text + "\"");
  }
}

TEST(SettingValues, HaveAPrecisionThatIsNeverChosenForAnybody) {
  EXPECT_EQ(checked(SettingId::Precision, "int8"), "int8");
  EXPECT_EQ(checked(SettingId::Precision, "own"), "own");
  EXPECT_EQ(checked(SettingId::Models, R"([{"model":"m.gguf","precision":"int8"}])"),
            R"([{"model":"m.gguf","precision":"int8"}])");
  EXPECT_EQ(checked(SettingId::Precision, "eight-bit"),
            "it must be one of auto, fp32, bf16, fp16, int8, or own for models that generate: "
            "\"eight-bit\"");
}

TEST(SettingValues, HaveOneFormOfModels) {
  EXPECT_EQ(checked(SettingId::Models, "m=org/name,./folder"),
            R"([{"name":"m","model":"org/name"},{"model":"./folder"}])");
  EXPECT_EQ(checked(SettingId::Models, R"([{"model":"a","normalize":true,"max_length":64}])"),
            R"([{"model":"a","normalize":"true","max_length":"64"}])");
  EXPECT_EQ(checked(SettingId::Models, R"([{"model":"a","kv_cache_dtype":"int8"}])"),
            R"([{"model":"a","kv_cache_dtype":"int8"}])");
  EXPECT_EQ(checked(SettingId::Models, R"([{"model":"a","poling":"cls"}])"),
            "it: a model has no setting poling; did you mean pooling?");
  EXPECT_EQ(checked(SettingId::Models, R"([{"model":"a","pooling":"sum"}])"),
            "it: pooling must be one of cls, mean, max, last: \"sum\"");
  EXPECT_EQ(checked(SettingId::Models, R"([{"name":"a"}])"),
            "it: a model needs a folder or a hub id");
  EXPECT_EQ(checked(SettingId::Models, "a,a"), "it: two models have the name a");
  EXPECT_EQ(checked(SettingId::Models, "[1]"), "it: each model must be a JSON object");
  EXPECT_EQ(checked(SettingId::Models, "[{"), "it: no JSON array of models");
}

TEST(SettingValues, ComeOutOfAFileOfListsAndMappings) {
  const auto given = parse_config_yaml(
      "models:\n"
      "  - model: BAAI/bge-m3\n"
      "    name: m3\n"
      "    devices: [cpu:0, cpu:1]\n"
      "  - ./other\n"
      "device_weights:\n"
      "  cpu:0: 2\n"
      "  cpu:1: 1\n"
      "task_types: {query: cpu:0, document: [cpu:0, cpu:1]}\n",
      "m.yaml");
  ASSERT_TRUE(given) << given.error().message;
  ASSERT_EQ(given->size(), 3U);
  EXPECT_EQ((*given)[0].value,
            R"([{"name":"m3","model":"BAAI/bge-m3","devices":["cpu:0","cpu:1"]},)"
            R"({"model":"./other"}])");
  EXPECT_EQ((*given)[0].place, "m.yaml:1");
  EXPECT_EQ((*given)[1].value, "cpu:0=2,cpu:1=1");
  EXPECT_EQ((*given)[1].place, "m.yaml:6");
  EXPECT_EQ((*given)[2].value, "query=cpu:0;document=cpu:0,cpu:1");
}

TEST(SettingValues, OfFilesComeOutOfAListOrAMapping) {
  for (const auto* text : {"search: [notes.npy, faq=a.npy]\n", "search: notes.npy,faq=a.npy\n"}) {
    EXPECT_EQ(parse_config_yaml(text, "m.yaml")->front().value, "notes.npy,faq=a.npy");
  }
  const auto given = parse_config_yaml("search:\n  notes: notes.npy\n  faq: a.npy\n", "m.yaml");
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->front().value, "notes=notes.npy,faq=a.npy");
}

TEST(SettingValues, SayTheLineInsideAFilesList) {
  const auto message = [](const char* text) {
    const auto given = parse_config_yaml(text, "m.yaml");
    return given ? "no error" : given.error().message;
  };
  EXPECT_EQ(message("models:\n  - model: a\n    precison: fp32\n"),
            "m.yaml:3: models: a model has no setting precison; did you mean precision?");
  EXPECT_EQ(message("models:\n  - model: a\n    precision: fp31\n"),
            "m.yaml:3: models: precision must be one of auto, fp32, bf16, fp16, int8, or own for "
            "models that generate: \"fp31\"; did you "
            "mean fp32?");
  EXPECT_EQ(message("models:\n  - name: a\n"),
            "m.yaml:2: models: a model needs a folder or a hub id");
  EXPECT_EQ(message("models:\n  - model: a\n    model: b\n"),
            "m.yaml:3: models: model stands twice");
  EXPECT_EQ(message("models:\n  a: b\n"),
            "m.yaml:2: models takes a list or a plain value, not a mapping");
  EXPECT_EQ(message("listen: [a]\n"), "m.yaml:1: listen takes a single value, not a list");
  EXPECT_EQ(message("task_types:\n  query:\n    a: b\n"),
            "m.yaml:2: task_types: expected a plain value or a list of them");
  EXPECT_EQ(message("models: [[[[[a]]]]]\n"), "m.yaml:1: models: too many levels");
  EXPECT_EQ(message("models:\n  - model:\n"), "m.yaml:2: models: model has no value");
}

}  // namespace
}  // namespace muster
