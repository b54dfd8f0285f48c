// The parts of the NVIDIA backend that need no driver.
#include <gtest/gtest.h>

#include <cstring>

#include "hw/nvml/nvml_fields.h"
#include "hw/nvml/nvml_mig.h"
#include "hw/nvml/nvml_pcie.h"
#include "hw/nvml/nvml_processes.h"

namespace muster {
namespace {

using Bytes = std::vector<unsigned char>;

// As a driver would fill a buffer with room for `room` entries of 32 bytes.
class ProcessBuffer {
 public:
  explicit ProcessBuffer(std::size_t room) : bytes_(room * 32, kNvmlUnwritten) {}

  template <typename Number>
  ProcessBuffer& put(std::size_t offset, Number number) {
    std::memcpy(bytes_.data() + offset, &number, sizeof(number));
    return *this;
  }

  // pid, 4 bytes of padding that nobody writes, memory, GPU instance, compute instance.
  ProcessBuffer& put_entry(std::size_t offset, std::uint32_t pid, std::uint64_t memory) {
    return put(offset, pid).put(offset + 8, memory).put(offset + 16, ~0ULL);
  }

  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

constexpr NvmlProcessLayout kUsual{false, false};

TEST(ParseNvmlProcesses, ReadsEntriesOf24Bytes) {
  ProcessBuffer buffer(8);
  buffer.put_entry(0, 1234, 7ULL << 30).put_entry(24, 99, ~0ULL);
  const auto processes = parse_nvml_processes(buffer.bytes(), 2, kUsual);
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].pid, 1234U);
  EXPECT_EQ(processes[0].memory_bytes, 7ULL << 30);
  EXPECT_EQ(processes[1].pid, 99U);
  EXPECT_FALSE(processes[1].memory_bytes) << "all ones: the driver does not know";
}

TEST(ParseNvmlProcesses, NoticesEntriesOf32Bytes) {
  ProcessBuffer buffer(8);
  for (std::size_t i = 0; i < 3; ++i) {
    buffer.put_entry(i * 32, static_cast<std::uint32_t>(100 + i), i << 20).put(i * 32 + 24, 0ULL);
  }
  for (const bool may_be_long : {false, true}) {
    const auto processes = parse_nvml_processes(buffer.bytes(), 3, {false, may_be_long});
    ASSERT_EQ(processes.size(), 3U);
    EXPECT_EQ(processes[1].pid, 101U);
    EXPECT_EQ(processes[2].pid, 102U);
    EXPECT_EQ(processes[2].memory_bytes, 2ULL << 20);
  }
}

TEST(ParseNvmlProcesses, ADriverThatCleansTheBufferStillHas24Bytes) {
  ProcessBuffer buffer(8);
  for (std::size_t i = 0; i < 8 * 24; i += 8) buffer.put(i, 0ULL);
  buffer.put_entry(0, 5, 1).put_entry(24, 6, 2);
  const auto processes = parse_nvml_processes(buffer.bytes(), 2, kUsual);
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[1].pid, 6U);
}

TEST(ParseNvmlProcesses, ReadsTheFirstVersionsEntries) {
  ProcessBuffer buffer(8);
  buffer.put(0, 11U).put(8, 5ULL << 20).put(16, 12U).put(24, ~0ULL);
  const auto processes = parse_nvml_processes(buffer.bytes(), 2, {true, false});
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].memory_bytes, 5ULL << 20);
  EXPECT_EQ(processes[1].pid, 12U);
  EXPECT_FALSE(processes[1].memory_bytes);
}

TEST(ParseNvmlProcesses, NeverReadsBeyondTheBuffer) {
  const Bytes buffer(4 * 32, 0);
  EXPECT_EQ(parse_nvml_processes(buffer, 4'000'000'000U, kUsual).size(), 4U);
  EXPECT_TRUE(parse_nvml_processes({}, 7, kUsual).empty());
}

NvmlFieldValue field_value(NvmlValueType type, std::initializer_list<unsigned char> bytes) {
  NvmlFieldValue value{};
  value.type = type;
  std::copy(bytes.begin(), bytes.end(), value.value.begin());
  return value;
}

TEST(NvmlNumber, GoesByTheType) {
  using enum NvmlValueType;
  EXPECT_EQ(nvml_number(field_value(Uint, {1, 2, 0, 0, 0xFF, 0xFF})), 513.0);
  EXPECT_EQ(nvml_number(field_value(Int, {0xFE, 0xFF, 0xFF, 0xFF})), -2.0);
  EXPECT_EQ(nvml_number(field_value(Ushort, {3, 1, 0xFF})), 259.0);
  EXPECT_EQ(nvml_number(field_value(Ulonglong, {0, 0, 0, 0, 1})), 4294967296.0);
  EXPECT_EQ(nvml_number(field_value(Ulong, {0, 0, 0, 0, 1})), 4294967296.0);
  EXPECT_EQ(nvml_number(field_value(Longlong, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})),
            -1.0);
  EXPECT_EQ(nvml_number(field_value(Double, {0, 0, 0, 0, 0, 0, 0xF8, 0x3F})), 1.5);
  EXPECT_FALSE(nvml_number(field_value(Double, {0, 0, 0, 0, 0, 0, 0xF8, 0x7F}))) << "NaN";
  EXPECT_FALSE(nvml_number(field_value(static_cast<NvmlValueType>(7), {1})));
}

TEST(OfferAfter, LearnsFromTheFirstAnswerOnly) {
  using enum NvmlOffer;
  EXPECT_EQ(offer_after(Unknown, kNvmlSuccess, false), Offered);
  EXPECT_EQ(offer_after(Unknown, kNvmlNotSupported, false), Absent);
  EXPECT_EQ(offer_after(Unknown, kNvmlFunctionNotFound, false), Absent);
  EXPECT_EQ(offer_after(Unknown, kNvmlInvalidArgument, false), Unknown);
  EXPECT_EQ(offer_after(Unknown, kNvmlInvalidArgument, true), Absent);
  EXPECT_EQ(offer_after(Unknown, kNvmlUnknown, true), Unknown) << "a failure teaches nothing";
  EXPECT_EQ(offer_after(Offered, kNvmlNotSupported, false), Offered);
}

TEST(PcieRate, IsThatOfTheLink) {
  EXPECT_DOUBLE_EQ(pcie_bytes_per_second(1, 1).value(), 0.25e9);
  EXPECT_DOUBLE_EQ(pcie_bytes_per_second(2, 4).value(), 2e9);
  EXPECT_NEAR(pcie_bytes_per_second(4, 16).value(), 31.508e9, 1e6);
  EXPECT_FALSE(pcie_bytes_per_second(0, 16));
  EXPECT_FALSE(pcie_bytes_per_second(7, 16));
  EXPECT_FALSE(pcie_bytes_per_second(4, 0));
}

TimePoint at_ms(int milliseconds) { return TimePoint() + std::chrono::milliseconds(milliseconds); }

TEST(PcieByteCounter, FollowsWraps) {
  PcieByteCounter counter(31.5e9);
  EXPECT_FALSE(counter.bytes());
  counter.add(4294967000.0, at_ms(0));
  EXPECT_EQ(counter.bytes(), 0.0);
  counter.add(704.0, at_ms(100));  // 296 up to the wrap and 704 after it
  EXPECT_EQ(counter.bytes(), 1000.0);
  counter.add(1704.0, at_ms(200));
  EXPECT_EQ(counter.bytes(), 2000.0);
}

TEST(PcieByteCounter, SaysNothingWhereAWrapCouldBeMissed) {
  PcieByteCounter counter(31.5e9);  // 4 GiB in 136 ms
  counter.add(1000.0, at_ms(0));
  counter.add(5000.0, at_ms(150));
  EXPECT_FALSE(counter.bytes());
  counter.add(6000.0, at_ms(250));
  EXPECT_EQ(counter.bytes(), 1000.0);
  counter.add(std::nullopt, at_ms(350));
  EXPECT_FALSE(counter.bytes());
}

TEST(PcieByteCounter, WithoutTheLinksSpeedOnlyWideCountersTell) {
  PcieByteCounter counter(std::nullopt);
  counter.add(1000.0, at_ms(0));
  counter.add(2000.0, at_ms(100));
  EXPECT_FALSE(counter.bytes());
  counter.add(5e9, at_ms(200));
  counter.add(5e9 + 700, at_ms(300));
  EXPECT_EQ(counter.bytes(), 700.0) << "a step of more than a wrap tells nothing";
}

TEST(MigProfileName, IsMadeOfSizes) {
  NvmlAttributes attributes{};
  const auto name = [&](std::uint32_t gpu, std::uint32_t compute, std::uint64_t mib,
                        std::uint64_t total_mib) {
    attributes.gpu_instance_slices = gpu;
    attributes.compute_instance_slices = compute;
    attributes.memory_mib = mib;
    return mig_profile_name(attributes, total_mib << 20);
  };
  // Memory as NVIDIA's MIG User Guide shows it with nvidia-smi -L: A100 40 GB, H100 80 GB.
  EXPECT_EQ(name(1, 1, 4864, 40536), "1g.5gb");
  EXPECT_EQ(name(3, 3, 19968, 40536), "3g.20gb");
  EXPECT_EQ(name(3, 1, 19968, 40536), "1c.3g.20gb");
  EXPECT_EQ(name(1, 1, 9856, 81559), "1g.10gb");
  EXPECT_EQ(name(7, 7, 80384, 81559), "7g.80gb");
}

}  // namespace
}  // namespace muster
