// Runs a fuzz target over the files of its corpus, and over mutations of them with a fixed seed,
// where there is no libFuzzer.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size);

int main(int argc, char** argv) {
    constexpr unsigned kMutations = 300;
    std::uint64_t state = 88172645463325252;
    const auto random = [&state] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<std::size_t>(state >> 11);
    };
    unsigned files = 0;
    unsigned long runs = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            std::ifstream file(entry.path(), std::ios::binary);
            const std::string seed{std::istreambuf_iterator<char>(file), {}};
            ++files;
            for (unsigned k = 0; k <= kMutations; ++k) {
                std::string input = seed;
                for (unsigned change = k % 4; k != 0 && change < 4 && !input.empty(); ++change) {
                    const std::size_t at = random() % input.size();
                    switch (random() % 3) {
                        case 0:
                            input[at] = static_cast<char>(random());
                            break;
                        case 1:
                            input.erase(at, 1);
                            break;
                        default:
                            input.insert(at, 1, "\r\n :;%0\t"[random() % 8]);
                            break;
                    }
                }
                LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()),
                                       input.size());
                ++runs;
            }
        }
    }
    std::printf("%u files, %lu runs\n", files, runs);
    return files == 0 ? 1 : 0;
}
