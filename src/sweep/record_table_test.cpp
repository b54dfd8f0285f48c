#include "sweep/record_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "sweep/device_stats.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using Columns = std::vector<std::string>;

// Of so many GPUs, with the keys that every record's GPUs have.
Json record_of(const std::string& point, std::uint32_t gpus, std::uint32_t first = 0) {
  Json record{{"point", point}, {"timestamp", "t"}, {"valid", true}};
  record["config"] = {{"device_ids", Json::array()}, {"model", "a, \"b\"\nc"}};
  record["energy"] = {{"joules", 1.5}, {"method", nullptr}};
  record["gpu_stats"] = Json::object();
  for (std::uint32_t gpu = first; gpu < first + gpus; ++gpu) {
    record["config"]["device_ids"].push_back(gpu);
    auto& json = record["gpu_stats"]["gpu_" + std::to_string(gpu)];
    for (const auto& key : gpu_stat_keys()) json[key] = key + std::to_string(gpu);
  }
  return record;
}

// What a record must be in a table, worked out anew and not by the table's own code.
void expect_equal(const RecordTable& table, std::size_t row, const Json& record) {
  const std::function<void(const Json&, const std::string&)> look = [&](const Json& value,
                                                                        const std::string& name) {
    if (value.is_object()) {
      for (const auto& item : value.items()) {
        look(item.value(), name.empty() ? item.key() : name + "_" + item.key());
      }
      return;
    }
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_null()) text = "";
    if (value.is_array()) {
      text = "";
      for (std::size_t i = 0; i < value.size(); ++i) {
        text += (i > 0 ? "," : "") +
                (value[i].is_string() ? value[i].get<std::string>() : value[i].dump());
      }
    }
    EXPECT_EQ(table.cell(row, name), text) << name;
  };
  look(record, "");
}

TEST(RecordTable, IsEqualToItsRecordsWhateverTheyHold) {
  RecordTable table;
  const std::vector<Json> records{record_of("a", 1), record_of("b", 2), record_of("c", 0)};
  for (const auto& record : records) table.put(record);
  const auto again = RecordTable::read(table.text(), "x.csv");
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->row_count(), 3U);
  for (std::size_t i = 0; i < records.size(); ++i) expect_equal(*again, i, records[i]);
  EXPECT_EQ(again->text(), table.text());
  EXPECT_EQ(again->cell(0, "config_device_ids"), "0");
  EXPECT_EQ(again->cell(1, "config_device_ids"), "0,1");
  EXPECT_EQ(again->cell(1, "gpu_stats_gpu_1_utilization_percent"), "utilization_percent1");
  EXPECT_EQ(again->cell(0, "gpu_stats_gpu_1_utilization_percent"), "");
}

// The fault of document 1: a run with more GPUs shifted its cells under other columns.
TEST(RecordTable, KeepsEachColumnInItsPlaceHoweverManyGpusThereAre) {
  RecordTable table;
  table.put(record_of("a", 1));
  const auto one = table.columns();
  table.put(record_of("b", 4));
  const auto four = table.columns();
  table.put(record_of("c", 2));
  EXPECT_EQ(table.columns(), four) << "no new one, and none gone";
  ASSERT_GT(four.size(), one.size());
  EXPECT_EQ(Columns(four.begin(), four.begin() + static_cast<std::ptrdiff_t>(one.size())), one);
  RecordTable reversed;
  reversed.put(record_of("b", 4));
  reversed.put(record_of("a", 1));
  EXPECT_EQ(reversed.columns(), four) << "whichever came first";
  RecordTable second;  // of the second GPU alone
  second.put(record_of("d", 1, 1));
  EXPECT_EQ(
      second.columns(),
      Columns(four.begin(), four.begin() + static_cast<std::ptrdiff_t>(second.columns().size())))
      << "the first one's columns are there, and empty";
}

TEST(RecordTable, PutsAPointInThePlaceOfTheSamePoint) {
  RecordTable table;
  table.put(record_of("a", 1));
  table.put(record_of("b", 1));
  auto better = record_of("a", 1);
  better["energy"]["joules"] = 9;
  table.put(better);
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.cell(0, "energy_joules"), "9");
  EXPECT_TRUE(table.is_up_to_date(record_of("b", 1)));
  EXPECT_FALSE(table.is_up_to_date(record_of("c", 1)));
  auto later = record_of("b", 1);
  later["timestamp"] = "later";
  EXPECT_FALSE(table.is_up_to_date(later));
  EXPECT_EQ(table.points(), (Columns{"a", "b"}));
}

// A later version's record has a key more: it comes last in a file that is there.
TEST(RecordTable, AddsNewColumnsBehindTheLast) {
  RecordTable table;
  table.put(record_of("a", 1));
  const auto before = table.columns();
  auto record = record_of("b", 1);
  record["summary"]["new"] = 1;
  table.put(record);
  EXPECT_EQ(table.columns().size(), before.size() + 1);
  EXPECT_EQ(table.columns().back(), "summary_new");
}

TEST(RecordTable, ReadsWhatASpreadsheetWrites) {
  const auto table = RecordTable::read(
      "point,timestamp,valid,text\r\na,t,TRUE,\"x,\r\n\"\"y\"\"\"\r\n\r\nb,t,,\r\n", "x.csv");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->row_count(), 2U);
  EXPECT_EQ(table->cell(0, "text"), "x,\r\n\"y\"");
  EXPECT_EQ(table->cell(1, "text"), "");
}

TEST(RecordTable, RefusesWhatIsNoTableOfItsOwn) {
  const auto refusal = [](const std::string& text) {
    const auto table = RecordTable::read(text, "x.csv");
    EXPECT_FALSE(table) << text;
    return table ? "" : table.error().message;
  };
  const std::string remedy = "; remove the table: --resume writes it anew from the points' files";
  EXPECT_EQ(refusal("name,age\nx,3\n"),
            "x.csv: that is no table of muster bench run, and it would be overwritten: remove it, "
            "or name another file");
  EXPECT_EQ(refusal("point,timestamp,valid,a\n1,2,3\n"),
            "x.csv:2: a row has 3 cells, and the header 4" + remedy);
  EXPECT_EQ(refusal("point,timestamp,valid,a\n1,2,3,\"4\n"),
            "x.csv:2: a quote does not end" + remedy);
  EXPECT_EQ(refusal("point,timestamp,valid,point\n"), "x.csv:1: a column stands twice" + remedy);
  EXPECT_TRUE(RecordTable::read("", "x.csv"));
}

}  // namespace
}  // namespace muster
