// Decoders that are loaded and unloaded over HTTP while a server runs, and why one is not loaded.
// They count (stand_ins/counting_worker).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/text.h"
#include "server/generation_fixture.h"
#include "serving/decoder_memory.h"

namespace muster {
namespace {

class DecoderLoads : public GenerationFixture {};

TEST_F(DecoderLoads, ADecoderIsLoadedAndUnloadedBesideModelsThatEmbed) {
  add_decoder("");
  start();
  const Json wanted{{"model", (folder_ / "counting").string()}, {"name", "second"}};
  const auto loaded = post("/v1/models/load", wanted.dump());
  ASSERT_EQ(loaded.status, 200) << loaded.body;
  EXPECT_EQ(json(loaded)["id"], "second");
  EXPECT_EQ(json(loaded)["task"], "generate");
  EXPECT_EQ(json(loaded)["state"], "ready");
  EXPECT_EQ(json(post("/v1/completions",
                      R"({"model":"second","prompt":"x","max_tokens":1})"))["choices"][0]["text"],
            "y");
  EXPECT_EQ(message(post("/v1/models/load", wanted.dump())),
            "Invalid 'name': a model of that name is there: second.");
  const Json as_tiny{{"model", (folder_ / "counting").string()}, {"name", "tiny"}};
  EXPECT_EQ(message(post("/v1/models/load", as_tiny.dump())),
            "Invalid 'name': a model of that name is there: tiny.");

  const auto unloaded = post("/v1/models/unload", R"({"model":"second"})");
  EXPECT_EQ(
      json(unloaded),
      Json({{"id", "second"}, {"object", "model"}, {"state", "absent"}, {"in_flight_replies", 0}}));
  EXPECT_EQ(get("/v1/models/second").status, 404);
  const auto gone = post("/v1/completions", R"({"model":"second","prompt":"x"})");
  EXPECT_EQ(gone.status, 404) << gone.body;
  EXPECT_EQ(json(gone)["error"]["code"], "model_not_found");
  EXPECT_EQ(post("/v1/models/unload", R"({"model":"second"})").status, 404);
  EXPECT_EQ(post("/v1/embeddings", R"({"model":"tiny","input":"a"})").status, 200);
}

// What lies at a path is told to the log alone, by its name.
TEST_F(DecoderLoads, WhatIsNoModelFileIsNamedInTheLog) {
  std::string log;
  hooks_.log = [&log](const LogLine& line) { log += std::string(line.message) + "\n"; };
  start_counting();
  ASSERT_EQ(::mkfifo((folder_ / "p.gguf").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "f.gguf");
  for (const auto* name : {"p.gguf", "f.gguf", "none.gguf", "pipe"}) {
    const auto answer =
        post("/v1/models/load", Json{{"model", (folder_ / name).string()}, {"name", "x"}}.dump());
    EXPECT_EQ(answer.status, 404) << answer.body;
    EXPECT_EQ(
        message(answer),
        "The model cannot be loaded: the server's log says why, under the id of this request");
  }
  loop_.stop();
  thread_.join();
  for (const std::string cause : {"p.gguf: a pipe, not a file", "f.gguf: a folder, not a file",
                                  "none.gguf: no such file", "pipe: a pipe, not a model folder"}) {
    const auto line = "model x: not loaded: " + (folder_ / cause).string() + ", asked for by ";
    EXPECT_NE(log.find(line), std::string::npos) << cause << "\n" << log;
  }
}

// 499 is for clients that left; this one is still there.
TEST_F(DecoderLoads, ALoadThatAnUnloadOvertakesIsToldSo) {
  add_decoder("");
  start();
  ::setenv("COUNTING_WORKER", "hang_at_load", 1);
  const Json wanted{{"model", (folder_ / "counting").string()}, {"name", "second"}};
  const auto client = begin_post("/v1/models/load", wanted.dump());
  while (get("/v1/models/second").status != 200) std::this_thread::yield();
  EXPECT_EQ(get("/readyz").status, 200) << "nobody asked before, and it has started all the same";
  EXPECT_EQ(post("/v1/models/unload", R"({"model":"second"})").status, 200);
  const auto answer = read_until(client, "conflict");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 409 Conflict\r\n")) << answer;
  EXPECT_NE(answer.find("the model was unloaded while it was loading: second"), std::string::npos)
      << answer;
  EXPECT_EQ(get("/metrics").body.find(R"(status="499")"), std::string::npos);
}

// Of the start; its worker stops in place of measuring.
TEST_F(DecoderLoads, WhileADecoderIsMeasuredTheServerSaysSo) {
  options_.models.clear();
  add_decoder("hang_at_probe");
  const auto weights =
      std::filesystem::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
  for (const auto* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(weights / name, folder_ / "counting" / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  start_unready();
  while (json(get("/readyz"))["reason"] != "chat: its precision is being measured") {
    std::this_thread::yield();
  }
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/livez").status, 200);
  const auto health = get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(json(health)["workers"][0]["reason"], "the precision of chat is being measured");
  const auto model = json(get("/v1/models/chat"));
  EXPECT_EQ(model["state"], "loading");
  EXPECT_EQ(model["reason"], "its precision is being measured");
  EXPECT_EQ(model["precision"], nullptr);
  EXPECT_EQ(model["precision_reason"], "is being measured");
  EXPECT_EQ(json(get("/v1/models"))["data"].size(), 1U);
  const auto device = json(get("/v1/devices"))["devices"][0];
  EXPECT_EQ(device["state"], "starting");
  EXPECT_EQ(device["reason"], "the precision of chat is being measured");
  EXPECT_EQ(json(get("/api/ps"))["models"], Json::array()) << "as any that is not loaded";
  const auto early = post("/v1/completions", R"({"model":"chat","prompt":"x"})");
  EXPECT_EQ(early.status, 503) << early.body;
  EXPECT_EQ(message(early), "chat is being loaded");
  EXPECT_EQ(early.header("retry-after"), "1");
  const auto other = post("/v1/embeddings", R"({"model":"chat","input":"x"})");
  EXPECT_EQ(other.status, 400) << "it generates: " << other.body;
  EXPECT_EQ(post("/v1/models/unload", R"({"model":"chat"})").status, 200);
  EXPECT_EQ(get("/v1/models/chat").status, 404);
}

TEST_F(DecoderLoads, WhatDecodersDoNotHaveIsNamedByItsField) {
  start_counting();
  const auto refused = [&](const char* field, const Json& value) {
    const auto answer =
        post("/v1/models/load",
             Json{{"model", (folder_ / "counting").string()}, {"name", "second"}, {field, value}}
                 .dump());
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(json(answer)["error"]["param"], field) << answer.body;
    return message(answer);
  };
  EXPECT_EQ(refused("pooling", "mean"),
            "Invalid 'pooling': second: a model that generates has no pooling.");
  refused("normalize", true);
  refused("prompt_name", "query");
  refused("precision", "fp16");
  EXPECT_EQ(refused("length_max", 1),
            "Invalid 'length_max': second: length_max leaves no room for a prompt and its reply: "
            "1.");
  refused("devices", Json::array({"cpu:9"}));
  EXPECT_EQ(post("/v1/models/load", R"({"model":"/no/such/file.gguf"})").status, 404);
}

// Of no kind that computes decoders. Precision and cache would do on a CPU: none of them is wrong.
TEST_F(DecoderLoads, WrongDevicesAreNamedWhateverElseIsAskedFor) {
  Device other;
  other.kind = DeviceKind::Mps;
  options_.devices.push_back(other);
  start_counting();
  const auto field_of = [&](const char* device, const Json& more) {
    Json wanted{{"model", (folder_ / "counting").string()},
                {"name", "second"},
                {"devices", Json::array({device})}};
    wanted.update(more);
    const auto answer = post("/v1/models/load", wanted.dump());
    EXPECT_EQ(answer.status, 400) << answer.body;
    return json(answer)["error"]["param"];
  };
  EXPECT_EQ(field_of("mps:0", Json::object()), "devices");
  EXPECT_EQ(field_of("mps:0", {{"precision", "int8"}}), "devices");
  EXPECT_EQ(field_of("mps:0", {{"precision", "own"}}), "devices");
  EXPECT_EQ(field_of("mps:0", {{"kv_cache_dtype", "int8"}}), "devices");
  EXPECT_EQ(field_of("cpu:0", {{"precision", "fp16"}, {"kv_cache_dtype", "int8"}}), "precision");
}

TEST_F(DecoderLoads, Int8IsAPrecisionOfEveryModelOnCpus) {
  add_decoder("");
  start();
  const auto precision_of = [&](const std::string& model, const char* name) {
    const auto loaded = post("/v1/models/load",
                             Json{{"model", model}, {"name", name}, {"precision", "int8"}}.dump());
    EXPECT_EQ(loaded.status, 200) << loaded.body;
    return json(get(std::string("/v1/models/") + name))["precision"];
  };
  EXPECT_EQ(precision_of(options_.models[0].model, "second"), "int8");
  EXPECT_EQ(precision_of((folder_ / "counting").string(), "third"), "int8");
}

TEST_F(DecoderLoads, NumbersOfACacheAreOfModelsThatGenerateAndOfNoOthers) {
  add_decoder("");
  start();
  const auto load = [&](const std::string& model, const char* dtype) {
    return post("/v1/models/load",
                Json{{"model", model}, {"name", "second"}, {"kv_cache_dtype", dtype}}.dump());
  };
  const auto unknown = load((folder_ / "counting").string(), "q8_0");
  EXPECT_EQ(unknown.status, 400) << unknown.body;
  EXPECT_EQ(json(unknown)["error"]["param"], "kv_cache_dtype");
  EXPECT_EQ(message(unknown),
            "Invalid 'kv_cache_dtype': expected 'auto', 'fp32', 'fp16' or 'int8'.");
  const auto refused = load(options_.models[0].model, "int8");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(json(refused)["error"]["param"], "kv_cache_dtype");
  EXPECT_EQ(message(refused),
            "Invalid 'kv_cache_dtype': second: a model that does not generate has no "
            "kv_cache_dtype.");
  EXPECT_EQ(json(get("/v1/models/chat"))["kv_cache_dtype"], "auto");
  const auto loaded = load((folder_ / "counting").string(), "fp16");
  ASSERT_EQ(loaded.status, 200) << loaded.body;
  EXPECT_EQ(json(loaded)["kv_cache_dtype"], "fp16");
}

// As models of the start have them: a cache is of a model that generates alone.
TEST_F(DecoderLoads, WhatALoadDoesNotNameIsAsTheServerWasToldForAll) {
  ::setenv("ZERO_WORKER", "dim=32", 1);  // the same row whatever the model is called
  add_decoder("");
  options_.defaults = {
      .precision = Precision::Int8, .wants_own_bits = false, .kv_cache_dtype = KvCacheDtype::Fp16};
  start();
  const auto load = [&](const std::string& model, const char* name, const Json& more) {
    Json wanted{{"model", model}, {"name", name}};
    wanted.update(more);
    const auto loaded = post("/v1/models/load", wanted.dump());
    EXPECT_EQ(loaded.status, 200) << loaded.body;
    return json(loaded);
  };
  const auto counting = (folder_ / "counting").string();
  const auto second = load(counting, "second", Json::object());
  EXPECT_EQ(second["precision"], "int8");
  EXPECT_EQ(second["kv_cache_dtype"], "fp16");
  const auto third = load(counting, "third", {{"precision", "fp32"}, {"kv_cache_dtype", "auto"}});
  EXPECT_EQ(third["precision"], "fp32");
  EXPECT_EQ(third["kv_cache_dtype"], "auto") << "auto is a name, too";
  EXPECT_EQ(load(options_.models[0].model, "fourth", Json::object())["precision"], "int8");
  const auto fifth = load(options_.models[0].model, "fifth", {{"precision", "auto"}});
  EXPECT_NE(fifth["precision"], "int8") << "auto never takes it";
}

TEST_F(DecoderLoads, ASettingForAllThatAModelCannotHaveIsRefusedAsTheServers) {
  ::setenv("ZERO_WORKER", "dim=32", 1);  // the same row whatever the model is called
  add_decoder("");
  options_.defaults.wants_own_bits = true;
  start();
  Json wanted{{"model", options_.models[0].model}, {"name", "second"}};
  const auto refused = post("/v1/models/load", wanted.dump());
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(json(refused)["error"]["param"], "precision");
  EXPECT_EQ(message(refused),
            "Invalid 'precision': second: own is for models that generate, and this one is "
            "computed in fp32, bf16, fp16 or int8 (the server's setting, since this load names "
            "none: name one, or auto).");
  wanted["precision"] = "auto";
  EXPECT_EQ(post("/v1/models/load", wanted.dump()).status, 200);
}

// Each of two devices holds two workers, of which one has its cache in 8 bits: 4 contexts of 128
// tokens and a block of 16, each token 2 x 2 layers x 2 heads of 8 values, of 16 bytes or of 12.
TEST_F(DecoderLoads, KeysAndValuesIn8BitsAreCountedAsTheyAreKept) {
  add_decoder("");
  options_.models.clear();
  const auto demand = decoder_demand(folder_ / "counting", DecoderPrecision::Own, 128);
  ASSERT_TRUE(demand) << demand.error().message;
  options_.machine.classes.push_back({.model = "CPU", .kind = DeviceKind::Cpu, .memory_bytes = 0});
  for (std::size_t i = 0; i < options_.devices.size(); ++i) {
    options_.machine.devices.push_back(
        {.kind = DeviceKind::Cpu,
         .free_bytes = 2 * demand->total() + 4ULL * (128 + 16) * 8 * (16 + 12)});
  }
  start();
  const auto load = [&](const char* dtype) {
    return post("/v1/models/load", Json{{"model", (folder_ / "counting").string()},
                                        {"name", "second"},
                                        {"kv_cache_dtype", dtype}}
                                       .dump());
  };
  EXPECT_EQ(load("auto").status, 429);
  const auto loaded = load("int8");
  EXPECT_EQ(loaded.status, 200) << loaded.body;
}

// Each of two devices holds one and a half workers. Keys and values of one: 4 contexts of 128
// tokens and a block of 16, each token 2 x 2 layers x 2 heads x 8 values x 2 bytes.
TEST_F(DecoderLoads, OneThatDoesNotFitIsRefusedWithItsFigures) {
  add_decoder("");
  options_.models.clear();
  const auto demand = decoder_demand(folder_ / "counting", DecoderPrecision::Own, 128);
  ASSERT_TRUE(demand) << demand.error().message;
  const auto needed = demand->total() + 4ULL * (128 + 16) * 128;
  options_.machine.classes.push_back({.model = "CPU", .kind = DeviceKind::Cpu, .memory_bytes = 0});
  for (std::size_t i = 0; i < options_.devices.size(); ++i) {
    options_.machine.devices.push_back(
        {.kind = DeviceKind::Cpu, .free_bytes = needed + needed / 2});
  }
  start();
  const Json wanted{{"model", (folder_ / "counting").string()}, {"name", "second"}};
  const auto refused = post("/v1/models/load", wanted.dump());
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_EQ(json(refused)["error"]["code"], "rate_limit_exceeded");
  EXPECT_TRUE(message(refused).starts_with("second needs " + human_bytes(needed) +
                                           " on each device (weights "))
      << refused.body;
  EXPECT_NE(message(refused).find(" and cpu:0 has " + human_bytes(needed / 2) + " left: unload "),
            std::string::npos)
      << refused.body;
  EXPECT_EQ(get("/v1/models/second").status, 404);
  const auto ask = [&](const char* model) {
    return post("/v1/completions",
                Json{{"model", model}, {"prompt", "x"}, {"max_tokens", 1}}.dump())
        .status;
  };
  EXPECT_EQ(ask("chat"), 200) << "the one that is there is as ever";
  EXPECT_EQ(ask("second"), 404);

  EXPECT_EQ(post("/v1/models/unload", R"({"model":"chat"})").status, 200);
  // Its workers count until they are gone.
  int status = 429;
  while (status == 429) status = post("/v1/models/load", wanted.dump()).status;
  EXPECT_EQ(status, 200);
  EXPECT_EQ(ask("second"), 200);
}

}  // namespace
}  // namespace muster
