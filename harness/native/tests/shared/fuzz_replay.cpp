// Feeds a fuzz target the files of its corpus and seeded mutations of them, where no libFuzzer is.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size);

namespace {

constexpr int kMutations = 300;
// What answers are made of: a cut or a repeat of these is another message.
constexpr std::string_view kWords[] = {"\r\n",    "\r\n\r\n", ":",  "HTTP/1.", "0", "9",
                                       "chunked", "close",    "\t", ";",       ",", "5\r\nhello"};

// One byte changed, some removed, some repeated, or a word put in.
void mutate(std::string* input, std::mt19937* random) {
    if (input->empty()) return;
    const std::size_t at = (*random)() % input->size();
    const std::size_t size = (*random)() % 24;
    switch ((*random)() % 4) {
        case 0:
            (*input)[at] = static_cast<char>((*random)());
            break;
        case 1:
            input->erase(at, size);
            break;
        case 2:
            input->insert(at, input->substr(at, size));
            break;
        default:
            input->insert(at, kWords[(*random)() % std::size(kWords)]);
            break;
    }
}

void run(const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
    std::set<std::filesystem::path> files;  // in one order everywhere
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            files.insert(entry.path());
        }
    }
    std::mt19937 random(1);
    for (const auto& path : files) {
        std::ifstream file(path, std::ios::binary);
        const std::string kept{std::istreambuf_iterator<char>(file), {}};
        run(kept);
        for (int i = 0; i < kMutations; ++i) {
            std::string input = kept;
            for (int change = i % 4; change >= 0; --change) mutate(&input, &random);
            run(input);
        }
    }
    std::printf("%zu files, each with %d mutations\n", files.size(), kMutations);
    return files.empty() ? 1 : 0;
}
