#include "engine/decoder/mixtral_experts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "engine/decoder/decoder_fixture.h"
#include "modelfile/safetensors.h"

namespace muster::engine {
namespace {

namespace fs = std::filesystem;

/// A safetensors file of float32, tensor by tensor.
class FloatFile {
 public:
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           const std::string& data) {
    header_ += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})",
                           header_.empty() ? "" : ",", name, fmt::join(shape, ","), data_.size(),
                           data_.size() + data.size());
    data_ += data;
  }

  std::string bytes() const {
    auto header = "{" + header_ + "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');  // so that floats stand on their own size
    const std::uint64_t size = header.size();
    std::string file(sizeof size, '\0');
    std::memcpy(file.data(), &size, sizeof size);
    return file + header + data_;
  }

 private:
  std::string header_;
  std::string data_;
};

/// The fixture's folder, and one that a test writes beside it with another file of weights.
class MixtralFileTest : public testing::Test {
 protected:
  MixtralFileTest()
      : folder_(fs::path(testing::TempDir()) / ("mixtral." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~MixtralFileTest() override { fs::remove_all(folder_); }

  std::string data_of(const std::string& name) const {
    const auto* view = weights_->find(name);
    MUSTER_CHECK(view != nullptr);
    return {reinterpret_cast<const char*>(view->data.data()), view->data.size()};
  }

  /// What transformers 5.17 writes with `save_original_format=False`, of so many experts.
  std::string merged_file(std::int64_t expert_count) const {
    FloatFile file;
    for (const auto& [name, view] : weights_->tensors()) {
      constexpr std::string_view kRouter = "block_sparse_moe.gate";
      if (name.find("block_sparse_moe.experts") != std::string::npos) continue;
      auto renamed = name;
      if (const auto at = name.find(kRouter); at != std::string::npos) {
        renamed.replace(at, kRouter.size(), "mlp.gate");
      }
      file.add(renamed, view.shape, data_of(name));
    }
    const auto& spec = fixture_.options.spec;
    const std::int64_t hidden = spec.hidden_size;
    const std::int64_t inner = spec.intermediate_size;
    for (std::uint32_t layer = 0; layer < spec.layer_count; ++layer) {
      const auto prefix = fmt::format("model.layers.{}.", layer);
      std::string gate_up;
      std::string down;
      for (std::int64_t expert = 0; expert < expert_count; ++expert) {
        const auto single = fmt::format("{}block_sparse_moe.experts.{}.", prefix, expert);
        gate_up += data_of(single + "w1.weight") + data_of(single + "w3.weight");
        down += data_of(single + "w2.weight");
      }
      file.add(prefix + "mlp.experts.gate_up_proj", {expert_count, 2 * inner, hidden}, gate_up);
      file.add(prefix + "mlp.experts.down_proj", {expert_count, hidden, inner}, down);
    }
    return file.bytes();
  }

  /// The fixture's options with this file in the place of its own.
  DecoderOptions options_with(const std::string& file) const {
    EXPECT_TRUE(write_file_atomically(folder_ / "model.safetensors", file));
    auto options = fixture_.options;
    options.source = folder_;
    return options;
  }

  DecoderFixture fixture_{"mixtral"};
  const fs::path folder_;
  const Result<ModelWeights> weights_ = ModelWeights::open(fixture_.options.source);
};

TEST_F(MixtralFileTest, MergedExpertsAreThePublishedOnes) {
  auto merged = Decoder::load(options_with(merged_file(4)));
  ASSERT_TRUE(merged) << merged.error().message;
  const auto published = fixture_.load();
  EXPECT_EQ((*merged)->weights_bytes(), published->weights_bytes());
  EXPECT_EQ(TestSequence(**merged, 0).push(fixture_.prompt(0)),
            TestSequence(*published, 0).push(fixture_.prompt(0)));
}

TEST_F(MixtralFileTest, AStackOfTooFewExpertsIsNamed) {
  const auto decoder = Decoder::load(options_with(merged_file(3)));
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().message, folder_.string() +
                                         ": tensor model.layers.0.mlp.experts.gate_up_proj must be "
                                         "[4, 96, 32]: [3, 96, 32]");
}

// Weights of 2 layers: query and output 32 x 32, key and value 16 x 32, router 4 x 32, 4 experts of
// 3 x 48 x 32; the head 67 x 32 in panels of 16 outputs, as the router is. Routers stay float32.
TEST_F(MixtralFileTest, AllExpertsCountAsWeights) {
  constexpr std::uint64_t kLayer = 2 * 32 * 32 + 2 * 16 * 32 + 4 * 3 * 48 * 32;
  constexpr std::uint64_t kHead = 80 * 32;
  constexpr std::uint64_t kRouter = 16 * 32;
  auto options = fixture_.options;
  const auto bytes_in = [&](DecoderPrecision precision) {
    options.precision = precision;
    const auto decoder = Decoder::load(options);
    return decoder ? (*decoder)->weights_bytes() : 0;
  };
  EXPECT_EQ(bytes_in(DecoderPrecision::Fp32), (2 * (kLayer + kRouter) + kHead) * 4);
  EXPECT_EQ(bytes_in(DecoderPrecision::Bf16), (2 * kLayer + kHead) * 2 + 2 * kRouter * 4);
}

}  // namespace
}  // namespace muster::engine
