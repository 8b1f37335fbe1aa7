// Reads every kept seed, and every seed with a few bytes changed, cut out or doubled: with any compiler. The
// long search is libFuzzer's (preset fuzz). A crash ends the program, so each input is first kept in a file.
//
// usage: fuzz_replay SEEDS [READER [NUMBER OF CHANGES TO EACH SEED]]
#include "core/file.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "tests/fuzz/readers.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/resource.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

std::string changed(std::string bytes, const random::Stream& stream, std::uint64_t& draw) {
  const auto below = [&](std::size_t n) { return stream.below(draw++, n); };
  for (std::size_t change = 0, changes = 1 + below(4); change < changes && !bytes.empty(); ++change) {
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      default:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
    }
  }
  return bytes;
}

// No input may make a reader take more memory than this: a larger request is answered with std::bad_alloc,
// which is no error of this project. Sanitizers map terabytes that they do not use, so there is no limit
// under them.
void limit_memory() {
#ifndef MOELAB_SANITIZED
  const rlimit limit{2'000'000'000, 2'000'000'000};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  parallel::prepare_thread();
  limit_memory();
  const std::string wanted = argc > 2 ? argv[2] : "";
  const int changes = argc > 3 ? std::stoi(argv[3]) : 40;
  const fs::path last = fs::temp_directory_path() / "moelab-fuzz-last-input";
  bool found = false;
  for (const FuzzedReader& reader : fuzzed_readers()) {
    if (!wanted.empty() && reader.name != wanted) continue;
    found = true;
    std::vector<fs::path> seeds;
    for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / reader.name))
      seeds.push_back(entry.path());
    std::ranges::sort(seeds);
    for (const fs::path& seed : seeds) {
      const std::string bytes = read_file(seed);
      const random::Stream stream(0, seed.filename().string());
      std::uint64_t draw = 0;
      for (int i = 0; i <= changes; ++i) {
        const std::string input = i == 0 ? bytes : changed(bytes, stream, draw);
        try {
          replace_file(last, input);
          reader.read(input);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "%s: change %d of %s is answered with '%s'; the input is %s\n",
                       reader.name.c_str(), i, seed.c_str(), error.what(), last.c_str());
          return 1;
        }
      }
    }
    std::printf("%s: %zu seeds, %d changes to each\n", reader.name.c_str(), seeds.size(), changes);
  }
  return found ? 0 : 2;
}
