#include "modelfile/model_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "modelfile/hub_cache.h"
#include "modelfile/model_description.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

const std::string kBert = R"({"model_type":"bert","vocab_size":30522,"hidden_size":384,
  "num_hidden_layers":6,"num_attention_heads":12,"intermediate_size":1536,"type_vocab_size":2,
  "max_position_embeddings":512,"layer_norm_eps":1e-12,"hidden_act":"gelu","pad_token_id":0})";

class ModelFolderTest : public testing::Test {
 protected:
  ModelFolderTest()
      : root_(fs::path(testing::TempDir()) / ("model_folder." + std::to_string(::getpid()))),
        folder_(root_ / "tiny") {
    fs::create_directories(folder_ / "1_Pooling");
    ::setenv("HF_HUB_CACHE", (root_ / "hub").c_str(), 1);
  }
  ~ModelFolderTest() override { fs::remove_all(root_); }

  void write(const fs::path& name, const std::string& content) {
    fs::create_directories((folder_ / name).parent_path());
    ASSERT_TRUE(write_file_atomically(folder_ / name, content));
  }

  void write_sentence_model() {
    write("config.json", kBert);
    write("modules.json",
          R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
              {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
              {"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}])");
    write("1_Pooling/config.json",
          R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false})");
    write("sentence_bert_config.json", R"({"max_seq_length":256,"do_lower_case":true})");
    write("model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  }

  std::string message_of(const std::string& config) {
    write("config.json", config);
    const auto model = read_model_folder(folder_);
    return model ? "no error" : model.error().message;
  }

  fs::path root_;
  fs::path folder_;
};

TEST_F(ModelFolderTest, ADescriptionHasTheLengthThatTextsAreCutTo) {
  write_sentence_model();
  fs::remove(folder_ / "model.safetensors");  // described by its config alone
  const auto model = describe_model(folder_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->text_length, 256U);
  EXPECT_EQ(model->shape.length_max, 512U) << "the position table stays as it is";
}

TEST_F(ModelFolderTest, ABareEncoderIsMeanPooledAndNotNormalised) {
  write("config.json", kBert);
  const auto model = read_model_folder(folder_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->name, "tiny");
  EXPECT_EQ(model->encoder.family, EncoderFamily::Bert);
  EXPECT_EQ(model->encoder.head_size(), 32U);  // 384 / 12
  EXPECT_EQ(model->encoder.token_type_count, 2U);
  EXPECT_EQ(model->sentence.pooling, Pooling::Mean);
  EXPECT_FALSE(model->sentence.normalize);
  EXPECT_EQ(model->sentence.length_max, 512U);
}

TEST_F(ModelFolderTest, TheSentenceFilesSayPoolingLengthAndNormalisation) {
  write_sentence_model();
  const auto model = read_model_folder(folder_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->sentence.pooling, Pooling::Cls);
  EXPECT_TRUE(model->sentence.normalize);
  EXPECT_TRUE(model->sentence.lowercase);
  EXPECT_EQ(model->sentence.length_max, 256U);
}

TEST_F(ModelFolderTest, TheNewerPoolingWordsAreRead) {
  write_sentence_model();
  const std::vector<std::pair<std::string, Pooling>> cases{{R"("mean")", Pooling::Mean},
                                                           {R"("max")", Pooling::Max},
                                                           {R"("lasttoken")", Pooling::Last},
                                                           {R"(["cls"])", Pooling::Cls}};
  for (const auto& [word, pooling] : cases) {
    SCOPED_TRACE(word);
    write("1_Pooling/config.json", R"({"embedding_dimension":384,"pooling_mode":)" + word + "}");
    EXPECT_EQ(read_model_folder(folder_)->sentence.pooling, pooling);
  }
}

TEST_F(ModelFolderTest, WithoutALengthFileTheTokenizersLengthCountsWhenSane) {
  write("config.json", kBert);
  write("tokenizer_config.json", R"({"model_max_length":128})");
  EXPECT_EQ(read_model_folder(folder_)->sentence.length_max, 128U);
  write("tokenizer_config.json", R"({"model_max_length":1000000000000000019884624838656})");
  EXPECT_EQ(read_model_folder(folder_)->sentence.length_max, 512U);
  write("tokenizer_config.json", R"({"model_max_length":4096})");
  EXPECT_EQ(read_model_folder(folder_)->sentence.length_max, 512U);  // the position table
}

TEST_F(ModelFolderTest, PositionsOfRobertaBeginAfterThePaddingId) {
  write("config.json", R"({"model_type":"xlm-roberta","vocab_size":100,"hidden_size":8,
    "num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":16,"type_vocab_size":1,
    "max_position_embeddings":514,"pad_token_id":1})");
  EXPECT_EQ(read_model_folder(folder_)->sentence.length_max, 512U);  // 514 - 1 - 1
}

TEST_F(ModelFolderTest, DistilBertAndMpnetHaveTheirOwnFields) {
  write("config.json", R"({"model_type":"distilbert","vocab_size":100,"dim":8,"n_layers":3,
    "n_heads":2,"hidden_dim":16,"max_position_embeddings":64,"activation":"relu"})");
  const auto distilbert = read_model_folder(folder_);
  ASSERT_TRUE(distilbert) << distilbert.error().message;
  EXPECT_EQ(distilbert->encoder.layer_count, 3U);
  EXPECT_EQ(distilbert->encoder.activation, Activation::Relu);
  EXPECT_EQ(distilbert->encoder.token_type_count, 0U);

  write("config.json", R"({"model_type":"mpnet","vocab_size":100,"hidden_size":8,
    "num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":16,
    "max_position_embeddings":66,"relative_attention_num_buckets":16,"layer_norm_eps":1e-5})");
  const auto mpnet = read_model_folder(folder_);
  ASSERT_TRUE(mpnet) << mpnet.error().message;
  EXPECT_EQ(mpnet->encoder.relative_bucket_count, 16U);
  EXPECT_EQ(mpnet->encoder.padding_id, 1U);
  EXPECT_DOUBLE_EQ(mpnet->encoder.layer_norm_epsilon, 1e-5);
}

TEST_F(ModelFolderTest, AFaultInTheConfigNamesFileAndField) {
  const auto place = (folder_ / "config.json").string();
  EXPECT_EQ(message_of("{"), place + ": not valid JSON");
  EXPECT_EQ(message_of(R"({"model_type":"bert"})"), place + ": vocab_size is missing");
  EXPECT_EQ(message_of(R"({"model_type":"bert","vocab_size":-3})"),
            place + ": vocab_size must be an integer of 1 to 67108864, not -3");
  EXPECT_EQ(message_of(R"({"model_type":"llama"})"),
            place +
                ": model_type is none of bert, roberta, xlm-roberta, camembert, distilbert "
                "and mpnet: llama");
  auto heads = kBert;
  heads.replace(heads.find(":12,"), 4, ":13,");
  EXPECT_EQ(message_of(heads),
            place + ": the hidden size is not a multiple of the heads: 384 and 13");
  auto activation = kBert;
  activation.replace(activation.find("\"gelu\""), 6, "\"silu\"");
  EXPECT_EQ(message_of(activation),
            place + ": hidden_act is none of gelu, gelu_new and relu: silu");
}

TEST_F(ModelFolderTest, ADenseModuleIsRefusedByName) {
  write_sentence_model();
  write("modules.json",
        R"([{"path":"","type":"a.Transformer"},{"path":"1_Pooling","type":"a.Pooling"},
            {"path":"2_Dense","type":"sentence_transformers.models.Dense"}])");
  const auto model = read_model_folder(folder_);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(model.error().message.find("sentence_transformers.models.Dense in '2_Dense'"),
            std::string::npos);
}

TEST_F(ModelFolderTest, TwoPoolingsAtOnceAndAWayOutOfTheFolderAreRefused) {
  write_sentence_model();
  write("1_Pooling/config.json",
        R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true})");
  EXPECT_EQ(read_model_folder(folder_).error().kind, ErrorKind::Unsupported);
  write("modules.json",
        R"([{"path":"","type":"Transformer"},{"path":"../../etc","type":"Pooling"}])");
  EXPECT_EQ(read_model_folder(folder_).error().kind, ErrorKind::InvalidArgument);
}

TEST_F(ModelFolderTest, PromptsAndTheirDefaultAreRead) {
  write_sentence_model();
  write("config_sentence_transformers.json",
        R"({"prompts":{"query":"query: "},"default_prompt_name":"query"})");
  const auto model = read_model_folder(folder_);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_EQ(model->sentence.prompts.size(), 1U);
  EXPECT_EQ(model->sentence.prompts[0].text, "query: ");
  EXPECT_EQ(model->sentence.default_prompt, "query");
  write("config_sentence_transformers.json", R"({"default_prompt_name":"passage"})");
  EXPECT_EQ(read_model_folder(folder_).error().kind, ErrorKind::InvalidArgument);
}

TEST_F(ModelFolderTest, TheHashChangesWithAnyFileThatIsRead) {
  write_sentence_model();
  const auto before = model_hash(folder_);
  ASSERT_TRUE(before) << before.error().message;
  write("README.md", "words");
  EXPECT_EQ(*model_hash(folder_), *before);
  write("1_Pooling/config.json", R"({"pooling_mode":"max"})");
  EXPECT_NE(*model_hash(folder_), *before);
}

TEST_F(ModelFolderTest, AHubIdIsFoundInTheCache) {
  const fs::path model = root_ / "hub" / "models--sentence-transformers--all-tiny";
  fs::create_directories(model / "refs");
  fs::create_directories(model / "snapshots" / "abc");
  ASSERT_TRUE(write_file_atomically(model / "refs" / "main", "abc\n"));
  EXPECT_EQ(*find_model("sentence-transformers/all-tiny"), model / "snapshots" / "abc");
  EXPECT_EQ(*find_model("all-tiny"), model / "snapshots" / "abc");
  EXPECT_EQ(*find_model(folder_.string()), folder_);

  ASSERT_TRUE(write_file_atomically(model / "snapshots" / "abc" / "config.json", kBert));
  EXPECT_EQ(read_model_folder(*find_model("all-tiny"))->name, "sentence-transformers/all-tiny");
}

TEST_F(ModelFolderTest, ANameThatTheCatalogueKnowsIsFoundUnderItsOrganisation) {
  const fs::path model = root_ / "hub" / "models--BAAI--bge-m3";
  fs::create_directories(model / "refs");
  fs::create_directories(model / "snapshots" / "abc");
  ASSERT_TRUE(write_file_atomically(model / "refs" / "main", "abc\n"));
  EXPECT_EQ(*find_model("bge-m3"), model / "snapshots" / "abc");
  // One that a pull has only begun is no model yet.
  fs::create_directories(root_ / "hub" / "models--org--begun" / "blobs");
  EXPECT_EQ(cached_hub_ids(root_ / "hub"), std::vector<std::string>{"BAAI/bge-m3"});
  EXPECT_TRUE(cached_hub_ids(root_ / "nowhere").empty());
}

TEST_F(ModelFolderTest, AnUnknownNameSaysWhereItLookedAndWhatIsNearest) {
  fs::create_directories(root_ / "hub" / "models--sentence-transformers--all-tiny");
  EXPECT_EQ(find_model("all-tinny").error().message,
            "all-tinny: neither a folder nor a model in the hub cache " + (root_ / "hub").string() +
                "; did you mean sentence-transformers/all-tiny? Otherwise fetch it by "
                "muster pull sentence-transformers/all-tinny, or under another organisation");
  EXPECT_EQ(find_model("org/else").error().message,
            "org/else: neither a folder nor a model in the hub cache " + (root_ / "hub").string() +
                "; fetch it by muster pull org/else");
  EXPECT_EQ(find_model("BGE-m3").error().message,
            "BGE-m3: neither a folder nor a model in the hub cache " + (root_ / "hub").string() +
                "; fetch it by muster pull BAAI/bge-m3");
  EXPECT_EQ(find_model("SmolLM2", ModelUse::Generate).error().message,
            "SmolLM2: neither a folder nor a model in the hub cache " + (root_ / "hub").string() +
                "; fetch it by muster pull ORG/NAME, or give its .gguf file");
  EXPECT_EQ(find_model("org/else", ModelUse::Generate).error().message,
            find_model("org/else").error().message);
  EXPECT_EQ(find_model("../../x/y").error().message, "../../x/y: no such model folder");
  const auto file = (root_ / "chat.gguf").string();
  ASSERT_TRUE(write_file_atomically(file, "GGUF"));
  EXPECT_EQ(find_model(file).error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(find_model(file).error().message,
            file +
                ": a GGUF file is a model that generates (muster generate, muster serve "
                "NAME=FILE); one that embeds is a model folder");
}

// As huggingface_hub 2.x reads them: constants.py.
TEST_F(ModelFolderTest, TheHubCacheIsWhereHuggingFaceLooks) {
  ::setenv("HOME", "/elsewhere", 1);
  ::setenv("SCRATCH", "/scratch", 1);
  ::setenv("HF_HUB_CACHE", "${SCRATCH}/a/$SCRATCH/$UNSET_IN_THIS_TEST", 1);
  ::setenv("HUGGINGFACE_HUB_CACHE", "~/older", 1);
  ::setenv("HF_HOME", "~/hf", 1);
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(hub_cache(), "/scratch/a//scratch/$UNSET_IN_THIS_TEST");
  ::unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(hub_cache(), "/elsewhere/older");
  ::unsetenv("HUGGINGFACE_HUB_CACHE");
  EXPECT_EQ(hub_cache(), "/elsewhere/hf/hub");
  ::unsetenv("HF_HOME");
  EXPECT_EQ(hub_cache(), "/xdg/huggingface/hub");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(hub_cache(), "/elsewhere/.cache/huggingface/hub");
}

// As huggingface_hub 2.x: utils/_validators.py.
TEST(HubId, IsWhatTheHubAllows) {
  for (const char* good : {"foo", "foo/bar", "123", "Foo-BAR_foo.bar123", "_a/b_"}) {
    EXPECT_TRUE(is_hub_id(good)) << good;
  }
  for (const char* bad : {"", "/", "a/", "/a", "a/b/c", ".repo", "a/b.", "-a", "a--b", "a/b..c",
                          "foo.git", "a b", "a/b\n", "\xc3\xa9"}) {
    EXPECT_FALSE(is_hub_id(bad)) << bad;
  }
}

}  // namespace
}  // namespace muster
