#include "websocket/message_buffer.hpp"

#include <string>

#include "laws.hpp"

// AddressSanitizer asks this: short memory is a value there, too.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
    return "allocator_may_return_null=1";
}

namespace httpmark::websocket {
namespace {

TEST(MessageBuffer, it_holds_what_was_appended_however_it_grew) {
    Random random(3);
    MessageBuffer buffer;
    std::string due;
    for (unsigned i = 0; i < 2000; ++i) {
        const std::string part(random() % 200, static_cast<char>(random()));
        LAW(buffer.append(part));
        due += part;
        LAW(buffer.size() == due.size());
    }
    LAW(buffer.view() == due);
    LAW(buffer.capacity() <= 2 * due.size());
    buffer.remove_suffix(due.size() - 5);
    LAW(buffer.view() == due.substr(0, 5));
}

TEST(MessageBuffer, what_was_prepared_counts_only_once_it_is_committed) {
    MessageBuffer buffer;
    LAW(buffer.append("ab"));
    char* const room = buffer.prepare(1000);
    std::memcpy(room, "cd", 2);
    LAW(buffer.view() == "ab");
    buffer.commit(1);
    LAW(buffer.view() == "abc");
}

TEST(MessageBuffer, memory_is_given_back_between_messages) {
    MessageBuffer buffer;
    for (const std::size_t size : {std::size_t{1000}, std::size_t{100000}}) {
        LAW(buffer.append(std::string(size, 'x')));
        buffer.clear();
        LAW(buffer.size() == 0 && buffer.capacity() == 0);
    }
    LAW(buffer.append("again") && buffer.view() == "again");
}

TEST(MessageBuffer, memory_of_an_arena_ends_at_its_ceiling) {
    constexpr std::uint64_t kCeiling = 4 << 20;
    Arena arena(kCeiling);
    {
        MessageBuffer buffer(&arena);
        std::string due;
        const std::string part(100, 'x');
        while (buffer.append(part)) due += part;
        LAW(due.size() > kCeiling / 8 && due.size() < kCeiling);
        LAW(buffer.view() == due && arena.bytes_in_use() >= due.size());
        buffer.clear();
        LAW(arena.bytes_in_use() == 0);
        LAW(buffer.append("again") && buffer.view() == "again");
    }
    LAW(arena.bytes_in_use() == 0);
}

TEST(MessageBuffer, short_memory_is_told_and_loses_nothing) {
    MessageBuffer buffer;
    LAW(buffer.append("kept"));
    LAW(buffer.prepare(std::size_t{1} << 62) == nullptr);
    LAW(buffer.view() == "kept" && buffer.append("!") && buffer.view() == "kept!");
}

}  // namespace
}  // namespace httpmark::websocket
