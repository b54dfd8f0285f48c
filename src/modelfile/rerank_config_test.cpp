#include "modelfile/rerank_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string config_with(const std::string& fields) {
  return R"({"architectures":["BertForSequenceClassification"])" + fields + "}";
}

RerankSpec spec_of(const std::string& fields) {
  const auto spec = parse_rerank_config(config_with(fields));
  EXPECT_TRUE(spec) << spec.error().message;
  return spec && *spec ? **spec : RerankSpec{.label_count = 0};
}

TEST(RerankConfig, OnlyASequenceClassifierHasAHead) {
  EXPECT_EQ(*parse_rerank_config(R"({"architectures":["BertModel"]})"), std::nullopt);
  EXPECT_EQ(*parse_rerank_config(R"({"architectures":[]})"), std::nullopt);
  EXPECT_EQ(*parse_rerank_config("{}"), std::nullopt);
  EXPECT_TRUE(parse_rerank_config(config_with(""))->has_value());
  EXPECT_EQ(parse_rerank_config(R"({"architectures":[1]})").error().kind,
            ErrorKind::InvalidArgument);
}

TEST(RerankConfig, LabelsAreCountedAsTransformersDoes) {
  EXPECT_EQ(spec_of(R"(,"id2label":{"0":"LABEL_0"})").label_count, 1U);
  EXPECT_EQ(spec_of(R"(,"id2label":{"0":"a","1":"b","2":"c"},"num_labels":3)").label_count, 3U);
  EXPECT_EQ(spec_of(R"(,"num_labels":4)").label_count, 4U);
  EXPECT_EQ(spec_of("").label_count, 2U);
  EXPECT_EQ(parse_rerank_config(config_with(R"(,"id2label":{})")).error().kind,
            ErrorKind::InvalidArgument);
}

TEST(RerankConfig, TheActivationIsTheSigmoidForOneLabelUnlessStated) {
  const std::string one = R"(,"id2label":{"0":"LABEL_0"})";
  EXPECT_EQ(spec_of(one).activation, ScoreActivation::Sigmoid);
  EXPECT_EQ(spec_of(R"(,"num_labels":3)").activation, ScoreActivation::Identity);
  EXPECT_EQ(spec_of(one + R"(,"sentence_transformers":{"activation_fn":
                        "torch.nn.modules.linear.Identity","version":"4.1.0"})")
                .activation,
            ScoreActivation::Identity);
  EXPECT_EQ(spec_of(one + R"(,"sbert_ce_default_activation_function":
                        "torch.nn.modules.linear.Identity")")
                .activation,
            ScoreActivation::Identity);
  // What is not torch's is not run.
  EXPECT_EQ(
      spec_of(one + R"(,"sbert_ce_default_activation_function":"own.code.Identity")").activation,
      ScoreActivation::Sigmoid);
  const auto other = parse_rerank_config(config_with(
      one + R"(,"sentence_transformers":{"activation_fn":"torch.nn.modules.activation.Tanh"})"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(other.error().message,
            "config.json: the activation of the scores is neither Sigmoid nor Identity: "
            "torch.nn.modules.activation.Tanh");
}

TEST(RerankConfig, TheTokenizerSaysWhetherTheSecondTextIsToldApart) {
  const auto use = [](const std::string& text, EncoderFamily family = EncoderFamily::Bert) {
    return *parse_segment_use(text, family);
  };
  EXPECT_TRUE(use("{}"));
  EXPECT_TRUE(use(R"({"tokenizer_class":"BertTokenizer"})"));
  EXPECT_FALSE(use(R"({"tokenizer_class":"TokenizersBackend"})"));
  EXPECT_TRUE(use(R"({"tokenizer_class":"TokenizersBackend",
                      "model_input_names":["input_ids","token_type_ids","attention_mask"]})"));
  EXPECT_FALSE(use(R"({"tokenizer_class":"BertTokenizer","model_input_names":["input_ids"]})"));
  EXPECT_FALSE(use("{}", EncoderFamily::Roberta));
}

TEST(ScoreActivations, AreThoseOfTorch) {
  EXPECT_FLOAT_EQ(activate_score(ScoreActivation::Identity, -3.5F), -3.5F);
  EXPECT_FLOAT_EQ(activate_score(ScoreActivation::Sigmoid, 0), 0.5F);
  EXPECT_FLOAT_EQ(activate_score(ScoreActivation::Sigmoid, 2), 0.88079708F);  // 1 / (1 + e^-2)
  EXPECT_EQ(activate_score(ScoreActivation::Sigmoid, -200), 0);
}

class CrossEncoderFolderTest : public testing::Test {
 protected:
  CrossEncoderFolderTest()
      : folder_(fs::path(testing::TempDir()) / ("cross_encoder." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    write("config.json", R"({"architectures":["BertForSequenceClassification"],
      "id2label":{"0":"LABEL_0"},"model_type":"bert","vocab_size":100,"hidden_size":8,
      "num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":16,"type_vocab_size":2,
      "max_position_embeddings":64})");
    write("tokenizer_config.json", R"({"model_max_length":48,"tokenizer_class":"BertTokenizer"})");
  }
  ~CrossEncoderFolderTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(write_file_atomically(folder_ / name, content));
  }

  fs::path folder_;
};

TEST_F(CrossEncoderFolderTest, IsReadWithoutTheFilesOfSentenceTransformers) {
  const auto model = read_model_folder(folder_);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(model->rerank);
  EXPECT_EQ(model->rerank->label_count, 1U);
  EXPECT_EQ(model->rerank->length_max, 48U);
  EXPECT_TRUE(model->rerank->has_segments);
}

TEST_F(CrossEncoderFolderTest, TheFilesOfSentenceTransformersGoBefore) {
  write("modules.json", R"([{"idx":0,"name":"0","path":"",
    "type":"sentence_transformers.base.modules.transformer.Transformer"}])");
  write("config_sentence_transformers.json",
        R"({"activation_fn":"torch.nn.modules.linear.Identity","model_type":"CrossEncoder"})");
  write("sentence_bert_config.json", R"({"max_seq_length":32})");
  const auto model = read_model_folder(folder_);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(model->rerank);
  EXPECT_EQ(model->rerank->activation, ScoreActivation::Identity);
  EXPECT_EQ(model->rerank->length_max, 32U);
}

TEST_F(CrossEncoderFolderTest, AFolderWithAPoolingIsNone) {
  fs::create_directories(folder_ / "1_Pooling");
  write("modules.json", R"([{"path":"","type":"a.Transformer"},
                            {"path":"1_Pooling","type":"a.Pooling"}])");
  write("1_Pooling/config.json", R"({"pooling_mode":"cls"})");
  const auto model = read_model_folder(folder_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->rerank);
  EXPECT_EQ(model->sentence.pooling, Pooling::Cls);
}

}  // namespace
}  // namespace muster
