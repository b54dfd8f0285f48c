#include "run_muster.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Muster::Muster(const std::string& name)
    : folder_(fs::path(testing::TempDir()) /
              ("muster_cli_" + std::to_string(getpid()) + "_" + name)) {
  fs::create_directories(folder_);
  const char* path = std::getenv("PATH");
  set("PATH", path == nullptr ? "/usr/bin:/bin" : path);
  set("HOME", folder_.string());
  // What `check_torch_root` looks for; the test worker needs no torch.
  fs::create_directories(folder_ / "torch/lib");
  write("torch/lib/libtorch_cpu.so", "");
  write("torch/version.py", "__version__ = '2.11.0+cpu'\n");
}

Muster::~Muster() { fs::remove_all(folder_); }

void Muster::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
}

std::string Muster::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
  return text.str();
}

void Muster::set(const std::string& variable, const std::string& value) {
  std::erase_if(environment_,
                [&](const std::string& entry) { return entry.starts_with(variable + "="); });
  environment_.push_back(variable + "=" + value);
}

pid_t Muster::start(const std::vector<std::string>& arguments, const std::string& input,
                    const std::string& output) {
  std::vector<std::string> words{MUSTER_BINARY_DIR "/bin/muster"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  constexpr mode_t kMode = 0644;
  // A program that runs already keeps the file that it has open.
  const auto errors = folder_ / "stderr";
  fs::remove(errors);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder_.c_str());
  if (input.empty()) {
    posix_spawn_file_actions_addclose(&actions, 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  }
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), kWrite, kMode);
  posix_spawn_file_actions_addopen(&actions, 2, errors_name_.c_str(), kWrite, kMode);
  pid_t pid = -1;
  const int code = posix_spawn(&pid, words.front().c_str(), &actions, nullptr,
                               pointers(words).data(), pointers(environment_).data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(code, 0) << "cannot start " << words.front();
  errors_.insert_or_assign(pid, UniqueFd(::open(errors.c_str(), O_RDONLY | O_CLOEXEC)));
  return pid;
}

Finished Muster::wait(pid_t pid) const {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read("stdout"),
          .err = read("/proc/self/fd/" + std::to_string(errors_.at(pid).get()))};
}

Finished Muster::run(const std::vector<std::string>& arguments, const std::string& input,
                     const std::string& output) {
  return wait(start(arguments, input, output));
}

std::vector<std::string> with_test_worker(std::vector<std::string> arguments) {
  for (const auto* word : {"--torch-root", "torch", "--worker-program",
                           MUSTER_BINARY_DIR "/bin/zero_worker", "--devices", "1xcpu"}) {
    arguments.emplace_back(word);
  }
  return arguments;
}

std::string tiny_model() { return MUSTER_SOURCE_DIR "/tests/models/tiny"; }

void write_tiny_decoder(const Muster& muster, const std::filesystem::path& model) {
  std::filesystem::create_directory(model);
  std::filesystem::copy(tiny_model() + "/tokenizer.json", model);
  muster.write("model/config.json",
               R"({"model_type":"llama","vocab_size":80,"num_attention_heads":4,)"
               R"("num_hidden_layers":2,"hidden_size":32,"intermediate_size":40,)"
               R"("max_position_embeddings":64})");
  muster.write("model/tokenizer_config.json",
               R"({"chat_template":"{% for m in messages %}{{ m.content }}{% endfor %}"})");
}

}  // namespace muster
