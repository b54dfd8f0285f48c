#include "hw/visible_devices.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Ordinals = std::vector<std::optional<std::uint32_t>>;
constexpr std::nullopt_t kHidden = std::nullopt;

DeviceIdentity gpu(const std::string& uuid, std::uint32_t capability,
                   std::uint32_t multiprocessors) {
  DeviceIdentity identity;
  identity.device.kind = DeviceKind::Cuda;
  identity.device.uuid = uuid;
  identity.device.compute_capability = capability;
  identity.multiprocessor_count = multiprocessors;
  return identity;
}

DeviceIdentity slice(const std::string& uuid, const std::string& parent, std::uint32_t instance) {
  DeviceIdentity identity;
  identity.device.uuid = uuid;
  identity.parent = parent;
  identity.gpu_instance = instance;
  identity.compute_instance = 0;
  return identity;
}

// On the bus: an L4 (8.9, 58 multiprocessors), two H100 (9.0, 132), an A100 (8.0, 108).
std::vector<DeviceIdentity> mixed() {
  return {gpu("GPU-11110000-aaaa", 89, 58), gpu("GPU-22220000-bbbb", 90, 132),
          gpu("GPU-22221111-cccc", 90, 132), gpu("GPU-44440000-dddd", 80, 108)};
}

std::vector<DeviceIdentity> alike() {
  return {gpu("GPU-a", 90, 132), gpu("GPU-b", 90, 132), gpu("GPU-c", 90, 132)};
}

// GPU-x has two slices, GPU-y is whole, GPU-z is in MIG mode without a slice.
std::vector<DeviceIdentity> sliced() {
  auto x = gpu("GPU-x", 90, 132);
  x.is_mig_on = true;
  auto z = gpu("GPU-z", 90, 132);
  z.is_mig_on = true;
  return {x, slice("MIG-one", "GPU-x", 7), slice("MIG-two", "GPU-x", 8), gpu("GPU-y", 90, 132), z};
}

TEST(CudaOrdinals, ArePciOrderWhereAllGpusAreAlike) {
  EXPECT_EQ(cuda_ordinals(alike(), std::nullopt, std::nullopt), (Ordinals{0, 1, 2}));
  EXPECT_EQ(cuda_ordinals(alike(), std::nullopt, "FASTEST_FIRST"), (Ordinals{0, 1, 2}));
}

TEST(CudaOrdinals, PutTheFastestFirstAndTheOthersInPciOrder) {
  EXPECT_EQ(cuda_ordinals(mixed(), std::nullopt, std::nullopt), (Ordinals{1, 0, 2, 3}));
  EXPECT_EQ(cuda_ordinals(mixed(), std::nullopt, "PCI_BUS_ID"), (Ordinals{0, 1, 2, 3}));
  // Of equal capability the one with more multiprocessors.
  EXPECT_EQ(cuda_ordinals({gpu("GPU-a", 86, 46), gpu("GPU-b", 86, 84)}, std::nullopt, std::nullopt),
            (Ordinals{1, 0}));
}

TEST(CudaOrdinals, FollowTheOrderOfTheList) {
  EXPECT_EQ(cuda_ordinals(alike(), "2,0", "PCI_BUS_ID"), (Ordinals{1, kHidden, 0}));
  EXPECT_EQ(cuda_ordinals(alike(), "GPU-c,GPU-a", std::nullopt), (Ordinals{1, kHidden, 0}));
  EXPECT_EQ(cuda_ordinals(alike(), " 1 , 0 ", std::nullopt), (Ordinals{1, 0, kHidden}));
}

TEST(CudaOrdinals, CountIndicesInCudasOrder) {
  // Index 0 is the first H100 by speed, the L4 by the bus.
  EXPECT_EQ(cuda_ordinals(mixed(), "0", std::nullopt), (Ordinals{kHidden, 0, kHidden, kHidden}));
  EXPECT_EQ(cuda_ordinals(mixed(), "0", "PCI_BUS_ID"), (Ordinals{0, kHidden, kHidden, kHidden}));
}

TEST(CudaOrdinals, AnEmptyListHidesAll) {
  EXPECT_EQ(cuda_ordinals(alike(), "", std::nullopt), (Ordinals{kHidden, kHidden, kHidden}));
}

TEST(CudaOrdinals, WhatNamesNothingHidesItselfAndAllAfterIt) {
  // The guide's own example: "0,2,-1,1" leaves 0 and 2.
  EXPECT_EQ(cuda_ordinals(alike(), "0,2,-1,1", std::nullopt), (Ordinals{0, kHidden, 1}));
  EXPECT_EQ(cuda_ordinals(alike(), "-1", std::nullopt), (Ordinals{kHidden, kHidden, kHidden}));
  EXPECT_EQ(cuda_ordinals(alike(), "1,3,0", std::nullopt), (Ordinals{kHidden, 0, kHidden}));
  EXPECT_EQ(cuda_ordinals(alike(), "1,,0", std::nullopt), (Ordinals{kHidden, 0, kHidden}));
  EXPECT_EQ(cuda_ordinals(alike(), "none", std::nullopt), (Ordinals{kHidden, kHidden, kHidden}));
  EXPECT_EQ(cuda_ordinals(alike(), "GPU-b,GPU-q,GPU-a", std::nullopt),
            (Ordinals{kHidden, 0, kHidden}));
  EXPECT_EQ(cuda_ordinals(alike(), "1,GPU-a", std::nullopt), (Ordinals{kHidden, 0, kHidden}))
      << "one form only";
  EXPECT_EQ(cuda_ordinals(alike(), "99999999999999999999", std::nullopt),
            (Ordinals{kHidden, kHidden, kHidden}));
}

TEST(CudaOrdinals, ADeviceNamedTwiceHidesAll) {
  EXPECT_EQ(cuda_ordinals(alike(), "0,1,0", std::nullopt), (Ordinals{kHidden, kHidden, kHidden}));
}

TEST(CudaOrdinals, TakeAUuidByItsUniqueBeginning) {
  EXPECT_EQ(cuda_ordinals(mixed(), "GPU-22221", std::nullopt),
            (Ordinals{kHidden, kHidden, 0, kHidden}));
  EXPECT_EQ(cuda_ordinals(mixed(), "GPU-2222", std::nullopt),
            (Ordinals{kHidden, kHidden, kHidden, kHidden}))
      << "two GPUs begin so";
}

TEST(CudaOrdinals, OneSliceIsAllThatIsSeen) {
  const auto first = Ordinals{kHidden, 0, kHidden, kHidden, kHidden};
  const auto second = Ordinals{kHidden, kHidden, 0, kHidden, kHidden};
  EXPECT_EQ(cuda_ordinals(sliced(), std::nullopt, std::nullopt), first);
  EXPECT_EQ(cuda_ordinals(sliced(), "0", "PCI_BUS_ID"), first);
  EXPECT_EQ(cuda_ordinals(sliced(), "GPU-x", std::nullopt), first);
  EXPECT_EQ(cuda_ordinals(sliced(), "MIG-two", std::nullopt), second);
  EXPECT_EQ(cuda_ordinals(sliced(), "MIG-two,MIG-one", std::nullopt), second);
  EXPECT_EQ(cuda_ordinals(sliced(), "MIG-GPU-x/8/0", std::nullopt), second);
}

TEST(CudaOrdinals, AWholeGpuIsSeenWhereNoSliceIs) {
  EXPECT_EQ(cuda_ordinals(sliced(), "GPU-y", std::nullopt),
            (Ordinals{kHidden, kHidden, kHidden, 0, kHidden}));
  EXPECT_EQ(cuda_ordinals(sliced(), "GPU-z", std::nullopt),
            (Ordinals{kHidden, kHidden, kHidden, kHidden, kHidden}))
      << "in MIG mode without a slice there is nothing to run on";
}

TEST(CudaOrdinals, OfNothingAreNone) { EXPECT_TRUE(cuda_ordinals({}, "0", std::nullopt).empty()); }

}  // namespace
}  // namespace muster
