#include "coordinator/device_blame.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(DeviceBlame, ThreeFailedBatchesInARowAreTheDevices) {
  DeviceBlame blame;
  EXPECT_FALSE(blame.on_failed());
  EXPECT_FALSE(blame.on_failed());
  blame.on_served();
  EXPECT_FALSE(blame.on_failed());
  EXPECT_FALSE(blame.on_failed());
  EXPECT_TRUE(blame.on_failed());
}

TEST(DeviceBlame, WhatAnotherDeviceCouldDoIsTheDevicesFault) {
  DeviceBlame blame;
  EXPECT_FALSE(blame.on_outdone(/*was_not_finite=*/false));
  blame.on_served();  // it may do others: it fails now and then
  EXPECT_FALSE(blame.on_outdone(false));
  EXPECT_TRUE(blame.on_outdone(false));
  blame.forget();
  EXPECT_FALSE(blame.on_outdone(false));
  EXPECT_TRUE(blame.on_outdone(/*was_not_finite=*/true));
}

TEST(DeviceBlame, OneThatHasServedNothingBlamesNoTextByItself) {
  DeviceBlame blame;
  EXPECT_FALSE(blame.may_blame_text(/*struck_here=*/true));
  EXPECT_TRUE(blame.may_blame_text(/*struck_here=*/false));
  blame.on_served();
  EXPECT_TRUE(blame.may_blame_text(/*struck_here=*/true));
}

}  // namespace
}  // namespace muster
