#include "websocket/mask.hpp"

#include <cstring>
#include <string>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark::websocket {
namespace {

// RFC 6455 5.3, word for word.
std::string masked(std::string octets, const char* key, std::uint64_t position) {
    for (std::size_t i = 0; i < octets.size(); ++i) {
        octets[i] = static_cast<char>(octets[i] ^ key[(position + i) % 4]);
    }
    return octets;
}

std::string some_octets(std::size_t size) {
    Random random(size);
    std::string out(size, '\0');
    for (char& c : out) c = static_cast<char>(random());
    return out;
}

// At the end of memory that can be read, at every alignment before it.
TEST(Mask, every_size_position_and_alignment) {
    GuardPage guard;
    const char key_octets[] = "\x37\xFA\x21\x3D";
    std::uint32_t key;
    std::memcpy(&key, key_octets, sizeof key);
    for (std::size_t size = 0; size < 140; ++size) {
        const std::string octets = some_octets(size);
        for (std::uint64_t position = 0; position < 9; ++position) {
            const std::string due = masked(octets, key_octets, position);
            for (std::size_t behind = 0; behind < 9; ++behind) {
                // What stands behind is left as it is.
                const std::string tail(behind, '#');
                char* const at = const_cast<char*>(guard.place(octets + tail));
                apply_mask(at, size, key, position);
                LAW(std::string_view(at, size + behind) == due + tail,
                    << size << " " << position << " " << behind);
            }
        }
    }
}

TEST(Mask, twice_is_nothing_and_in_parts_is_at_once) {
    Random random(7);
    for (unsigned round = 0; round < 500; ++round) {
        const std::string octets = some_octets(1 + random() % 300);
        const std::uint32_t key = random();
        const std::size_t cut = random() % octets.size();
        std::string parts = octets;
        apply_mask(parts.data(), cut, key, 0);
        apply_mask(parts.data() + cut, parts.size() - cut, key, cut);
        std::string whole = octets;
        apply_mask(whole.data(), whole.size(), key, 0);
        LAW(parts == whole, << octets.size() << " cut at " << cut);
        apply_mask(whole.data(), whole.size(), key, 0);
        LAW(whole == octets);
    }
}

TEST(Mask, the_position_may_be_anywhere_in_63_bits) {
    const std::string octets = some_octets(50);
    for (const std::uint64_t position :
         {std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 32, (std::uint64_t{1} << 63) - 51}) {
        std::string out = octets;
        std::uint32_t key;
        std::memcpy(&key, "abcd", 4);
        apply_mask(out.data(), out.size(), key, position);
        LAW(out == masked(octets, "abcd", position), << position);
    }
}

}  // namespace
}  // namespace httpmark::websocket
