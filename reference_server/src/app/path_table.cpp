#include "app/path_table.hpp"

#include "check.hpp"

namespace httpmark {

void PathTable::insert(const Slot& slot) {
    const auto size = static_cast<std::uint32_t>(slot.key);
    std::size_t at = hash(slot.text, size, slot.key, slot.end) & mask_;
    while (slots_[at].text != nullptr) at = (at + 1) & mask_;
    slots_[at] = slot;
}

void PathTable::add(std::string_view text, std::uint32_t space, std::uint32_t number) {
    CHECK(number != kNone && find(text, space) == kNone);
    std::vector<char>& kept = texts_.emplace_back(text.begin(), text.end());
    kept.push_back('\0');  // so that the empty text stands somewhere, too
    // At most half full: a text that is not there is told after a step or two.
    if (++count_ * 2 > slots_.size()) {
        const std::vector<Slot> before = std::move(slots_);
        slots_ = std::vector<Slot>(before.size() * 2);
        mask_ = slots_.size() - 1;
        for (const Slot& slot : before) {
            if (slot.text != nullptr) insert(slot);
        }
    }
    insert({kept.data(), key_of(text.size(), space), last_word(kept.data(), text.size()), number});
}

}  // namespace httpmark
