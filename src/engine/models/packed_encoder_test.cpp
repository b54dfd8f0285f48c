#include "engine/models/packed_encoder.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/encoder_fixture.h"
#include "engine/gpu.h"
#include "engine/gpu_device.h"
#include "engine/gpu_fixture.h"
#include "engine/guard.h"
#include "engine/kernel_trial.h"
#include "engine/ops/row_counts.h"

namespace muster::engine {
namespace {

const std::vector<std::string> kFamilies{"bert",        "bert_odd",   "roberta",
                                         "xlm_roberta", "distilbert", "mpnet"};

// The model for GPUs is computed here by torch's CPU operators in fp32, so that its weights,
// packing, places, bias and pooling are tested on every machine. GpuTest below has the rest: fp16
// and bf16, copies to and from a device, streams, memory that ends, and that a text's bits do not
// depend on its batch; with the stand-in device on every machine, with CUDA's kernels where there
// is a GPU.
struct OnCpu {
  c10::InferenceMode inference;
  EncoderWeights weights;  // on a CPU the model reads them where they are
  PackedEncoder encoder;

  explicit OnCpu(const EncoderFixture& fixture)
      : weights(*collect_weights(fixture.options.encoder,
                                 *ModelWeights::open(fixture.options.model_folder),
                                 fixture.options.rerank)),
        encoder(fixture.options.encoder, weights, Precision::Fp32, at::Device(at::kCPU)) {}
};

std::vector<float> hidden_on_cpu(const EncoderFixture& fixture, const TextBatch& batch) {
  const OnCpu on_cpu(fixture);
  LaneSeat alone;
  const auto state = on_cpu.encoder.last_hidden_state(batch, alone);
  const auto* values = state.const_data_ptr<float>();
  return {values, values + batch.ids.size() * fixture.options.encoder.hidden_size};
}

class PackedEncoderTest : public testing::TestWithParam<std::string> {
 protected:
  PackedEncoderTest() { enter_lane(); }
};

TEST_P(PackedEncoderTest, TheLastHiddenStateIsThatOfTransformers) {
  const EncoderFixture fixture(GetParam());
  EXPECT_LE(max_difference(hidden_on_cpu(fixture, fixture.batch()), fixture.expected("hidden")),
            1e-5F);
}

TEST_P(PackedEncoderTest, EveryPoolingIsThatOfSentenceTransformers) {
  const EncoderFixture fixture(GetParam());
  const OnCpu on_cpu(fixture);
  const auto batch = fixture.batch();
  std::vector<float> rows(batch.lengths.size() * fixture.options.encoder.hidden_size);
  const auto made = [&](const RowForm& form) {
    LaneSeat alone;
    on_cpu.encoder.make_rows(batch, form, rows, alone);
    return rows;
  };
  EXPECT_LE(max_difference(made({Pooling::Cls}), fixture.expected("cls")), 1e-5F);
  EXPECT_LE(max_difference(made({Pooling::Mean}), fixture.expected("mean")), 1e-5F);
  EXPECT_LE(max_difference(made({Pooling::Max}), fixture.expected("max")), 1e-5F);
  EXPECT_LE(max_difference(made({Pooling::Last}), fixture.expected("lasttoken")), 1e-5F);
  EXPECT_LE(max_difference(made({Pooling::Mean, true}), fixture.expected("normalized")), 1e-5F);
}

INSTANTIATE_TEST_SUITE_P(EveryFamily, PackedEncoderTest, testing::ValuesIn(kFamilies),
                         [](const auto& family) { return family.param; });

TEST(PackedEncoder, TheSecondTextOfAPairHasItsTokenType) {
  enter_lane();
  const EncoderFixture fixture("bert_cross");
  const auto batch = fixture.batch();
  const auto encoder = Encoder::load(fixture.options);
  ASSERT_TRUE(encoder) << encoder.error().message;
  std::vector<float> expected(batch.ids.size() * fixture.options.encoder.hidden_size);
  ASSERT_TRUE((*encoder)->last_hidden_state(batch, expected));
  EXPECT_LE(max_difference(hidden_on_cpu(fixture, batch), expected), 1e-5F);
}

class GpuTest : public OnGpu<testing::Test> {
 protected:
  static at::TensorOptions on_gpu() {
    return at::TensorOptions().device(torch_device(gpu_under_test()));
  }

  static at::Tensor bytes_on_gpu(std::uint64_t count) {
    return at::empty({static_cast<std::int64_t>(count)}, on_gpu().dtype(at::kByte));
  }

  static c10::DeviceAllocator& allocator() {
    return *c10::getDeviceAllocator(torch_device(gpu_under_test()).type());
  }

  /// Bytes that the allocator has from the device, given out or not.
  static std::int64_t taken_bytes() {
    return allocator().getDeviceStats(0).reserved_bytes[0].current;
  }

  /// Takes the device's memory but for so many bytes, and all that the allocator keeps free beside
  /// blocks in use: a small model's passes would find room there. What is left the device has, if
  /// it is in whole segments: of 2 MiB where CUDA's allocator is asked for up to 1 MiB. It wants
  /// one of 20 MiB for what is larger.
  static std::vector<at::Tensor> take_all_but(std::uint64_t left_bytes) {
    allocator().emptyCache();
    constexpr std::uint64_t kPiece = 1 << 20;
    std::vector<at::Tensor> left;
    for (std::uint64_t begin = 0; begin < left_bytes; begin += kPiece) {
      left.push_back(bytes_on_gpu(std::min(kPiece, left_bytes - begin)));
    }
    std::vector<at::Tensor> taken;
    constexpr std::uint64_t kLargeBlock = 32 << 20;
    auto size = std::max<std::uint64_t>(allocator().getMemoryInfo(0).first, kLargeBlock);
    while (size >= 64 << 10) {
      try {
        taken.push_back(bytes_on_gpu(size));
      } catch (const c10::Error&) {
        size /= 2;
      }
    }
    left.clear();
    allocator().emptyCache();
    return taken;
  }

  static std::unique_ptr<Encoder> load(const std::string& name, Precision precision,
                                       bool normalize = false) {
    EncoderFixture fixture(name, gpu_under_test());
    fixture.options.precision = precision;
    fixture.options.normalize = normalize;
    auto encoder = Encoder::load(fixture.options);
    EXPECT_TRUE(encoder) << encoder.error().message;
    return *std::move(encoder);
  }
};

// Texts of random ids and lengths.
struct Texts {
  std::vector<std::vector<std::uint32_t>> ids;

  Texts(std::size_t count, const EncoderSpec& encoder, std::uint32_t seed) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      auto& text = ids.emplace_back(1 + random() % encoder.length_max());
      for (auto& id : text) id = static_cast<std::uint32_t>(random() % encoder.vocab_size);
    }
  }

  // All of them, as they are.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> all(ids.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // The rows of these texts, in this order, computed as one batch.
  std::vector<std::vector<float>> encode(const Encoder& encoder,
                                         const std::vector<std::size_t>& order) const {
    std::vector<std::uint32_t> all;
    std::vector<std::uint32_t> lengths;
    for (const auto i : order) {
      all.insert(all.end(), ids[i].begin(), ids[i].end());
      lengths.push_back(static_cast<std::uint32_t>(ids[i].size()));
    }
    std::vector<float> rows(order.size() * encoder.dim());
    const auto status = encoder.encode({all, lengths}, rows);
    EXPECT_TRUE(status) << status.error().message;
    std::vector<std::vector<float>> result;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(i * encoder.dim());
      result.emplace_back(begin, begin + encoder.dim());
    }
    return result;
  }
};

TEST_F(GpuTest, TheLastHiddenStateIsThatOfTransformers) {
  for (const auto& name : kFamilies) {
    SCOPED_TRACE(name);
    const EncoderFixture fixture(name, gpu_under_test());
    const auto encoder = load(name, Precision::Fp32);
    std::vector<float> hidden(fixture.batch().ids.size() * encoder->dim());
    ASSERT_TRUE(encoder->last_hidden_state(fixture.batch(), hidden));
    const auto difference = max_difference(hidden, fixture.expected("hidden"));
    RecordProperty(name, std::to_string(difference * 1e6F) + "e-6");
    // A GPU adds in another order than the CPU that wrote the fixture.
    EXPECT_LE(difference, gpu_under_test() == DeviceKind::Cuda ? 2e-5F : 1e-5F);
  }
}

TEST_F(GpuTest, PooledRowsAreThoseOfSentenceTransformers) {
  for (const auto& name : kFamilies) {
    SCOPED_TRACE(name);
    EncoderFixture fixture(name, gpu_under_test());
    const auto batch = fixture.batch();
    for (const auto& [pooling, normalize, expected] :
         {std::tuple{Pooling::Cls, false, "cls"}, std::tuple{Pooling::Mean, false, "mean"},
          std::tuple{Pooling::Max, false, "max"}, std::tuple{Pooling::Last, false, "lasttoken"},
          std::tuple{Pooling::Mean, true, "normalized"}}) {
      fixture.options.pooling = pooling;
      fixture.options.normalize = normalize;
      const auto encoder = Encoder::load(fixture.options);
      ASSERT_TRUE(encoder) << encoder.error().message;
      std::vector<float> rows(batch.lengths.size() * (*encoder)->dim());
      ASSERT_TRUE((*encoder)->encode(batch, rows));
      EXPECT_LE(max_difference(rows, fixture.expected(expected)), 2e-5F) << expected;
    }
  }
}

TEST_F(GpuTest, SixteenBitsStayNearTheExpectedRows) {
  for (const auto& name : kFamilies) {
    for (const auto& [precision, limit] :
         {std::pair{Precision::Bf16, 0.06F}, std::pair{Precision::Fp16, 0.008F}}) {
      SCOPED_TRACE(name + " " + std::string(precision_name(precision)));
      const EncoderFixture fixture(name, gpu_under_test());
      const auto encoder = load(name, precision);
      std::vector<float> rows(fixture.batch().lengths.size() * encoder->dim());
      ASSERT_TRUE(encoder->encode(fixture.batch(), rows));
      EXPECT_LE(max_difference(rows, fixture.expected("mean")), limit);
    }
  }
}

TEST_F(GpuTest, ATextHasTheSameBitsInEveryOrderBatchLaneAndCompany) {
  for (const auto& name : kFamilies) {
    for (const auto precision : {Precision::Fp32, Precision::Bf16, Precision::Fp16}) {
      SCOPED_TRACE(name + " " + std::string(precision_name(precision)));
      const EncoderFixture fixture(name, gpu_under_test());
      const auto encoder = load(name, precision, /*normalize=*/true);
      const Texts texts(300, fixture.options.encoder, 7);
      auto order = texts.order();
      const auto expected = texts.encode(*encoder, order);
      for (std::size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(texts.encode(*encoder, {i})[0], expected[i]) << "alone: " << i;
      }
      std::shuffle(order.begin(), order.end(), std::mt19937(3));
      std::vector<std::vector<float>> shuffled;
      std::thread([&] {
        enter_lane(gpu_under_test());
        shuffled = texts.encode(*encoder, order);
      }).join();
      for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(shuffled[i], expected[order[i]]);
    }
  }
}

TEST_F(GpuTest, TwoLanesAtOnceGiveTheBitsOfOne) {
  const EncoderFixture fixture("bert", gpu_under_test());
  const auto encoder = load("bert", Precision::Bf16);
  const Texts texts(200, fixture.options.encoder, 11);
  auto order = texts.order();
  const auto expected = texts.encode(*encoder, order);
  std::vector<std::jthread> lanes;
  for (int lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&] {
      enter_lane(gpu_under_test());
      for (int round = 0; round < 50; ++round) EXPECT_EQ(texts.encode(*encoder, order), expected);
    });
  }
}

// What cuBLAS is told; whether it cuts a product along its inputs is its own choice.
TEST_F(GpuTest, PartsOfAProductAreAddedInFloat32) {
  const auto option = at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK;
  EXPECT_EQ(at::globalContext().allowFP16ReductionCuBLAS(), option);
  EXPECT_EQ(at::globalContext().allowBF16ReductionCuBLAS(), option);
}

TEST_F(GpuTest, RowCountsAreTriedOnRowsThatBeginAnAllocationAsThoseOfAPassDo) {
  const c10::InferenceMode inference;
  const std::vector<std::uint32_t> counts{256, 64, 32};
  bool do_all_begin_one = true;
  std::size_t tried = 0;
  const RowProduct product{21, [&](const at::Tensor& rows) {
                             do_all_begin_one = do_all_begin_one && rows.storage_offset() == 0;
                             ++tried;
                             return rows.mul(2);
                           }};
  const auto device = torch_device(gpu_under_test());
  EXPECT_EQ(agreeing_row_counts({&product, 1}, counts, at::kHalf, device), counts);
  EXPECT_TRUE(do_all_begin_one);
  EXPECT_EQ(tried, 1U + 1 + 2 + 4) << "the largest, moved; then 128 rows of each other count";
}

TEST_F(GpuTest, WithLittleMemoryABatchIsComputedInPartsAndGrowsAgain) {
  const EncoderFixture fixture("bert", gpu_under_test());
  const auto device = torch_device(gpu_under_test());
  const auto encoder = load("bert", Precision::Fp32);
  const Texts texts(3000, fixture.options.encoder, 5);
  const auto order = texts.order();
  // While there is memory: the libraries' workspaces, which stay, and the kernels of small passes.
  for (std::size_t count = 1; count < order.size(); count += count / 4 + 1) {
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
    (void)texts.encode(*encoder, {order.begin(), end});
  }
  restart_peak(device);
  const auto held = device_memory_use(device).live_bytes;
  const auto expected = texts.encode(*encoder, order);
  const auto needed = device_memory_use(device).peak_bytes - held;
  ASSERT_GT(needed, 0);
  const auto whole = encoder->pass_tokens();
  for (const std::uint64_t part : {2, 4, 10}) {
    SCOPED_TRACE(part);
    constexpr std::uint64_t kSegment = 2 << 20;
    const auto taken = take_all_but((needed / part + kSegment - 1) / kSegment * kSegment);
    EXPECT_EQ(texts.encode(*encoder, order), expected);
    EXPECT_LT(encoder->pass_tokens(), whole);
  }
  release_cached_memory(device);  // what was taken
  // A budget that was halved n times is whole after n x kPassesToGrow passes.
  for (std::size_t pass = 0; pass < 16 * PassBudget::kPassesToGrow; ++pass) {
    (void)texts.encode(*encoder, {0});
  }
  EXPECT_EQ(encoder->pass_tokens(), whole);
  EXPECT_EQ(texts.encode(*encoder, order), expected);
}

TEST_F(GpuTest, AModelThatIsGoneOrCannotBeLoadedGivesItsMemoryBack) {
  const EncoderFixture fixture("bert", gpu_under_test());
  const Texts texts(300, fixture.options.encoder, 5);
  const auto use = [&] { (void)texts.encode(*load("bert", Precision::Fp32), texts.order()); };
  use();  // what the libraries keep for good they have then
  release_cached_memory(torch_device(gpu_under_test()));
  const auto before = taken_bytes();
  use();
  EXPECT_LE(taken_bytes(), before);

  constexpr std::uint64_t kPartOfWeights = 64 << 10;
  const auto taken = take_all_but(kPartOfWeights);
  const auto full = taken_bytes();
  const auto encoder = Encoder::load(fixture.options);
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().kind, ErrorKind::ResourceExhausted) << encoder.error().message;
  EXPECT_LE(taken_bytes(), full);
}

// A stream that has made products has workspaces of its own, of 32 MiB on some GPUs.
TEST_F(GpuTest, AStreamThatIsDoneWithLeavesNothing) {
  const EncoderFixture fixture("bert", gpu_under_test());
  const Texts texts(30, fixture.options.encoder, 5);
  const auto use = [&] {
    enter_lane(gpu_under_test());
    (void)texts.encode(*load("bert", Precision::Fp32), texts.order());
    release_workspaces(gpu_under_test());
  };
  std::jthread(use).join();  // what the libraries keep for good they have then
  const auto before = taken_bytes();
  std::jthread(use).join();
  EXPECT_LE(taken_bytes(), before);
}

// In a process of its own: the error stays with the process.
TEST_F(GpuTest, AfterAnAssertionOfAKernelTheDeviceCannotBeUsed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto table = at::zeros({4, 4}, on_gpu());
        const bool was_usable = is_gpu_usable(gpu_under_test());
        const auto wrong = at::full({1}, 99, on_gpu().dtype(at::kLong));
        try {
          (void)table.index_select(0, wrong).cpu();
        } catch (const c10::Error&) {
        }
        std::_Exit(was_usable && !is_gpu_usable(gpu_under_test()) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(GpuTest, AKernelThatTorchLacksIsToldFromADeviceThatFails) {
  const auto kind_of = [](auto trial) {
    return guarded([&]() -> Status {
             try_kernel(torch_device(gpu_under_test()), "attention", trial);
             return Done{};
           })
        .error()
        .kind;
  };
  EXPECT_EQ(kind_of([] { TORCH_CHECK(false, "no kernel is there"); }), ErrorKind::Unsupported);
  EXPECT_EQ(kind_of([] { TORCH_CHECK(false, "CUDA error: out of memory"); }),
            ErrorKind::ResourceExhausted);
  // In a process of its own, as above.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto table = at::zeros({4, 4}, on_gpu());
        const auto wrong = at::full({1}, 99, on_gpu().dtype(at::kLong));
        const auto kind = kind_of([&] { (void)table.index_select(0, wrong); });
        std::_Exit(kind == ErrorKind::Internal ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Guard, WhatIsShortOfMemoryIsToldFromOtherErrors) {
  const auto kind_of = [](const char* text) {
    return guarded([&]() -> Status { TORCH_CHECK(false, text); }).error().kind;
  };
  EXPECT_EQ(kind_of("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            ErrorKind::ResourceExhausted);
  EXPECT_EQ(kind_of("CUDA error: out of memory"), ErrorKind::ResourceExhausted);
  EXPECT_EQ(kind_of("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(h)`"),
            ErrorKind::ResourceExhausted);
  EXPECT_EQ(kind_of("CUDA error: an illegal memory access was encountered"), ErrorKind::Internal);
}

// More than any machine has addresses for.
TEST(Guard, MemoryThatTheHostDoesNotHaveIsShortToo) {
  const auto status = guarded([]() -> Status {
    (void)at::empty({std::int64_t{1} << 60}, at::TensorOptions().dtype(at::kByte));
    return Done{};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::ResourceExhausted) << status.error().message;
}

TEST(Guard, WhatTorchDoesNotHaveHereIsUnsupported) {
  const auto status = guarded([]() -> Status { TORCH_CHECK_NOT_IMPLEMENTED(false, "no kernel"); });
  EXPECT_EQ(status.error().kind, ErrorKind::Unsupported);
}

TEST(Cuda, WithoutADeviceLoadingSaysWhy) {
  if (open_gpu(DeviceKind::Cuda)) GTEST_SKIP() << "this machine has a CUDA device";
  const EncoderFixture fixture("bert", DeviceKind::Cuda);
  const auto encoder = Encoder::load(fixture.options);
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().kind, ErrorKind::Unsupported);
  EXPECT_FALSE(encoder.error().message.empty());
}

}  // namespace
}  // namespace muster::engine
