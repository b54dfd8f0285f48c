#include "doctor/kernel_log.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(KernelLog, XidsHavePlaceCodeAndTime) {
  // The form of NVIDIA's page on XIDs, in records of /dev/kmsg.
  const auto xids = parse_kernel_log(
      "6,338,5140000,-;usb 1-1: new device\n"
      "4,339,5140900,-;NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has "
      "fallen off the bus.\n"
      " SUBSYSTEM=pci\n"
      "4,340,6000000,c;NVRM: Xid (PCI:0001:CA:00): 31, pid=9, Ch 00000008\n");
  ASSERT_EQ(xids.size(), 2U);
  EXPECT_EQ(xids[0].pci_address, "0000:1b:00");
  EXPECT_EQ(xids[0].code, 79U);
  EXPECT_DOUBLE_EQ(xids[0].seconds_since_boot, 5.1409);
  EXPECT_EQ(xids[1].code, 31U);
}

TEST(KernelLog, WhatIsNoXidIsPassedOver) {
  EXPECT_TRUE(parse_kernel_log("").empty());
  EXPECT_TRUE(parse_kernel_log("NVRM: Xid (PCI:0000:1b:00): 79").empty());  // no record
  EXPECT_TRUE(parse_kernel_log("4,3,x,-;NVRM: Xid (PCI:0000:1b:00): 79").empty());
  EXPECT_TRUE(parse_kernel_log("4,3,1,-;NVRM: Xid (PCI:0000:1b:00): many").empty());
  EXPECT_TRUE(parse_kernel_log("4,3,1,-;NVRM: Xid (PCI:0000:1b:00").empty());
}

TEST(KernelLog, PlacesAreComparedWhateverTheirWidthAndCase) {
  EXPECT_TRUE(is_same_pci_place("0000:1b:00", "00000000:1B:00.0"));
  EXPECT_TRUE(is_same_pci_place("0001:ca:00", "00000001:CA:00.0"));
  EXPECT_FALSE(is_same_pci_place("0000:1b:00", "00000000:1C:00.0"));
  EXPECT_FALSE(is_same_pci_place("0001:1b:00", "00000000:1B:00.0"));
  EXPECT_FALSE(is_same_pci_place("", ""));
}

TEST(KernelLog, AMissingLogIsNotFound) {
  EXPECT_EQ(read_kernel_xids("/nonexistent").error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
