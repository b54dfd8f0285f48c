#include "cli/deploy_options.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

Arguments with(std::map<std::string, std::string, std::less<>> flags) {
  Arguments arguments;
  arguments.positionals = {"container"};
  arguments.flags = std::move(flags);
  arguments.flags.emplace("--api", "tgi");
  arguments.flags.emplace("--model", "org/not-on-this-machine");
  arguments.repeated["--devices"] = {"none"};
  return arguments;
}

std::string message(const Arguments& arguments) {
  const auto options = deploy_options(arguments, {});
  return options ? "no error" : options.error().message;
}

TEST(DeployOptions, ReadsEveryFlag) {
  auto arguments = with({{"--image", "x/y:1"},
                         {"--port", "9000"},
                         {"--host", "::1"},
                         {"--container-name", "mine"},
                         {"--shm-size", "512m"},
                         {"--dry-run", ""}});
  arguments.repeated["--env"] = {"A=b=c", "EMPTY="};
  arguments.repeated["--volume"] = {"cache:/data", "/srv/x:/x:ro"};
  arguments.positionals = {"container", "--max-batch-size", "4"};
  const auto options = deploy_options(arguments, {});
  ASSERT_TRUE(options) << options.error().message;
  const auto& request = options->request;
  EXPECT_EQ(request.api, ServerApi::Tgi);
  EXPECT_EQ(request.image, "x/y:1");
  EXPECT_EQ(request.port, 9000);
  EXPECT_EQ(request.host, "::1");
  EXPECT_EQ(request.name, "mine");
  EXPECT_EQ(request.shm_bytes, 512ULL << 20);
  ASSERT_EQ(request.environment.size(), 2U);
  EXPECT_EQ(request.environment[0].value, "b=c");
  EXPECT_EQ(request.environment[1].value, "");
  ASSERT_EQ(request.volumes.size(), 2U);
  EXPECT_FALSE(request.volumes[0].is_folder());
  EXPECT_TRUE(request.volumes[1].is_read_only);
  EXPECT_EQ(request.server_arguments, (std::vector<std::string>{"--max-batch-size", "4"}));
  EXPECT_TRUE(options->is_dry_run);
}

TEST(DeployOptions, TakesAFolderForAModel) {
  auto arguments = with({});
  arguments.flags["--model"] = MUSTER_SOURCE_DIR "/tests/models/../models/tiny";
  const auto options = deploy_options(arguments, {});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->request.model, MUSTER_SOURCE_DIR "/tests/models/tiny");
  EXPECT_EQ(options->request.heads.head_count, 2U);  // config.json's num_attention_heads
  EXPECT_EQ(options->request.heads.layer_count, 2U);
  arguments.flags["--model"] = "./no-such-folder";
  EXPECT_EQ(message(arguments), "./no-such-folder: no such folder");
}

TEST(DeployOptions, TakesAGgufFileForMuster) {
  const std::string file = MUSTER_SOURCE_DIR "/src/modelfile/corpus/gguf_fuzz/llama.gguf";
  auto arguments = with({});
  arguments.flags["--api"] = "muster";
  arguments.flags["--model"] = file;
  arguments.repeated["--devices"] = {"2xcpu"};
  const auto options = deploy_options(arguments, {});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->request.model, file);
  EXPECT_EQ(options->request.hub_cache, "");
  EXPECT_EQ(options->request.own_devices, "2xcpu");
  arguments.flags["--model"] = "absent.gguf";
  EXPECT_EQ(message(arguments), "absent.gguf: no such file");
  arguments.flags["--model"] = file;
  arguments.repeated["--devices"] = {"nvidia.com/gpu=0"};
  EXPECT_EQ(message(arguments),
            file + ": muster computes decoders on CPUs only: use --devices cpu");
  arguments.flags["--api"] = "tgi";
  EXPECT_EQ(message(arguments), file +
                                    ": a .gguf file is for --api muster; Text Generation Inference "
                                    "gets a folder or a name on the hub");
}

TEST(DeployOptions, AsksForWhatIsMissing) {
  auto arguments = with({});
  arguments.flags.erase("--api");
  EXPECT_EQ(message(arguments), "which server? Name it with --api: tgi, tei, vllm or muster");
  arguments = with({});
  arguments.flags.erase("--model");
  EXPECT_EQ(message(arguments), "which model? Name it with --model");
  arguments = with({});
  arguments.repeated.clear();
  EXPECT_EQ(message(arguments),
            "which devices? Name them with --devices (muster deploy container --detect-only lists "
            "them), or say --plan, --auto-select or --devices none");
  EXPECT_EQ(message(with({{"--auto-select", ""}})),
            "--auto-select chooses the devices that --devices names: say one");
}

TEST(DeployOptions, SaysWhatIsWrong) {
  EXPECT_EQ(message(with({{"--port", "0"}})),
            "--port must be a whole number from 1 to 65535: \"0\"");
  EXPECT_EQ(message(with({{"--port", "80a"}})),
            "--port must be a whole number from 1 to 65535: \"80a\"");
  EXPECT_EQ(message(with({{"--host", "localhost"}})),
            "--host is an address of this machine, such as 127.0.0.1 or 0.0.0.0 for all: "
            "\"localhost\"");
  EXPECT_EQ(message(with({{"--format", "compsoe"}})),
            "unknown format: \"compsoe\"; did you mean compose?");
  auto arguments = with({});
  arguments.repeated["--env"] = {"K"};
  EXPECT_EQ(message(arguments), "--env is NAME=VALUE: \"K\"");
  arguments = with({});
  arguments.repeated["--volume"] = {"a:/b:rw"};
  EXPECT_EQ(message(arguments), "--volume is SOURCE:/PATH or SOURCE:/PATH:ro: \"a:/b:rw\"");
  arguments = with({});
  arguments.positionals = {"container", "stray"};
  EXPECT_NE(message(arguments).find("one word too many: \"stray\""), std::string::npos);
}

TEST(DeployOptions, CannotChooseDevicesForAModelThatIsNotHere) {
  auto arguments = with({{"--auto-select", ""}});
  arguments.repeated.clear();
  const auto options = deploy_options(arguments, {});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().kind, ErrorKind::NotFound);
  EXPECT_NE(options.error().message.find("--auto-select must know how large the model is"),
            std::string::npos);
}

}  // namespace
}  // namespace muster
