#include "app/path_table.hpp"

#include <map>
#include <string>
#include <utility>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(PathTable, what_was_added_is_found_and_nothing_else) {
    Random random(7);
    PathTable table;
    std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> known;
    // Few letters and lengths around those of words, so that many texts are nearly the same.
    const auto text = [&] {
        std::string out(random() % 26, 'a');
        for (char& c : out) c = static_cast<char>('a' + random() % 2);
        return out;
    };
    for (std::uint32_t i = 0; i < 3000; ++i) {
        const std::pair<std::string, std::uint32_t> one{text(), random() % 3};
        if (known.emplace(one, i).second) table.add(one.first, one.second, i);
        const std::pair<std::string, std::uint32_t> asked{text(), random() % 3};
        const auto found = known.find(asked);
        LAW(table.find(asked.first, asked.second) ==
            (found == known.end() ? PathTable::kNone : found->second));
    }
    for (const auto& [one, number] : known) LAW(table.find(one.first, one.second) == number);
}

TEST(PathTable, each_octet_at_each_place_counts) {
    for (std::size_t size = 0; size < 40; ++size) {
        const std::string text(size, 'p');
        PathTable table;
        table.add(text, 0, 1);
        LAW(table.find(text) == 1 && table.find(text + 'p') == PathTable::kNone);
        for (std::size_t at = 0; at < size; ++at) {
            for (const char c : {'q', '\0', 'P', '\xFF'}) {
                std::string other = text;
                other[at] = c;
                LAW(table.find(other) == PathTable::kNone);
            }
            LAW(table.find(text.substr(at + 1)) == PathTable::kNone);
        }
    }
}

}  // namespace
}  // namespace httpmark
