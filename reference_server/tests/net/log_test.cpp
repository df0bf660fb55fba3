#include "net/log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

// Of a request-line that lives as long as the event.
AnswerEvent event_of(std::string_view request_line) {
    AnswerEvent event{};
    event.peer = "127.0.0.1:4";
    event.unix_seconds = 784111777;
    event.request_line = request_line;
    event.status = 200;
    event.content_size = 12;
    return event;
}

std::string all_of(LogRing& ring) {
    std::string out;
    for (std::string_view part = ring.peek(); !part.empty(); part = ring.peek()) {
        out += part;
        ring.drop(part.size());
    }
    return out;
}

TEST(Log, a_line_for_each_answer) {
    AccessLog log(3);
    log.on_answer(event_of("GET /hello?a=%22 HTTP/1.1"));
    ErrorEvent error{Reason::kTargetPercent, 7, "[::1]:5"};
    AnswerEvent refused{};
    refused.error = &error;
    refused.peer = error.peer;
    refused.unix_seconds = 784111778;
    refused.status = 400;
    refused.content_size = 15;
    log.on_answer(refused);
    error = {Reason::kHostMissing, ErrorEvent::kNoOffset, "-"};
    log.on_answer(refused);
    LAW(all_of(log.ring()) ==
        "1994-11-06T08:49:37Z 3 127.0.0.1:4 \"GET /hello?a=%22 HTTP/1.1\" 200 12 -\n"
        "1994-11-06T08:49:38Z 3 [::1]:5 \"-\" 400 15 target-percent@7\n"
        "1994-11-06T08:49:38Z 3 [::1]:5 \"-\" 400 15 host-missing\n");
}

// Whatever the size of what stands in it, and whatever came before.
TEST(Log, a_line_has_room_for_the_largest_numbers) {
    AccessLog log(12);
    log.on_answer(event_of("GET /" + std::string(5000, 'a') + " HTTP/1.1"));
    ErrorEvent error{Reason::kTargetPercent, ErrorEvent::kNoOffset - 1, "-"};
    AnswerEvent event = event_of("GET / HTTP/1.1");
    event.error = &error;
    event.status = 599;
    event.content_size = ~std::uint64_t{0};
    log.on_answer(event);
    LAW(all_of(log.ring()) ==
        "1994-11-06T08:49:37Z 12 127.0.0.1:4 \"GET /" + std::string(5000, 'a') +
            " HTTP/1.1\" 200 12 -\n"
            "1994-11-06T08:49:37Z 12 127.0.0.1:4 \"GET / HTTP/1.1\" 599 18446744073709551615 "
            "target-percent@18446744073709551614\n");
}

TEST(Log, a_full_ring_loses_whole_lines_and_counts_them) {
    AccessLog log(0);
    const std::string line_of_request = "GET " + std::string(984, 'a') + " HTTP/1.1";
    unsigned lines = 0;
    for (; log.lost() == 0; ++lines) log.on_answer(event_of(line_of_request));
    log.on_answer(event_of(line_of_request));
    LAW(log.lost() == 2);
    const std::string text = all_of(log.ring());
    const std::size_t size = text.find('\n') + 1;
    LAW(text.size() == (lines - 1) * size && text.size() + size > LogRing::kSize);
    // Room again, over the seam of the ring.
    for (unsigned i = 0; i < 1000; ++i) {
        log.on_answer(event_of("GET /" + std::to_string(i) + " HTTP/1.1"));
        const std::string line = all_of(log.ring());
        LAW(line.find(" /" + std::to_string(i) + " ") != std::string::npos && line.ends_with("-\n"),
            << line);
    }
    LAW(log.lost() == 2);
}

// A line is written where it stands in the ring, or beside it where that is too long.
TEST(Log, a_line_is_whole_wherever_the_ring_begins_anew) {
    const auto line_of = [](std::size_t size) {
        return "GET /" + std::string(size, 'x') + " HTTP/1.1";
    };
    const auto told = [](const std::string& request_line) {
        return "1994-11-06T08:49:37Z 0 127.0.0.1:4 \"" + request_line + "\" 200 12 -\n";
    };
    for (const std::size_t size : {std::size_t{1}, std::size_t{300}, std::size_t{2000}}) {
        AccessLog log(0);
        std::size_t passed = 0;  // bytes, by lines of sizes that have no common measure
        for (std::size_t i = 0; passed < 3 * LogRing::kSize; ++i) {
            const std::string request_line = line_of(size + i % 7);
            log.on_answer(event_of(request_line));
            const std::string text = all_of(log.ring());
            LAW(text == told(request_line), << passed);
            passed += text.size();
        }
        LAW(log.lost() == 0);
    }
}

TEST(Log, another_second_or_peer_begins_a_line_anew) {
    AccessLog log(0);
    AnswerEvent event = event_of("GET / HTTP/1.1");
    log.on_answer(event);
    event.peer = "127.0.0.1:5";
    log.on_answer(event);
    ++event.unix_seconds;
    log.on_answer(event);
    LAW(all_of(log.ring()) ==
        "1994-11-06T08:49:37Z 0 127.0.0.1:4 \"GET / HTTP/1.1\" 200 12 -\n"
        "1994-11-06T08:49:37Z 0 127.0.0.1:5 \"GET / HTTP/1.1\" 200 12 -\n"
        "1994-11-06T08:49:38Z 0 127.0.0.1:5 \"GET / HTTP/1.1\" 200 12 -\n");
}

TEST(Log, every_line_reaches_the_file_also_over_a_rotation) {
    const std::string path = testing::TempDir() + "httpmark-log-" + std::to_string(getpid());
    const auto text_of = [](const std::string& name) {
        std::ifstream file(name);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    };
    const auto lines_of = [](const std::string& text) {
        return std::count(text.begin(), text.end(), '\n');
    };
    AccessLog first(0);
    AccessLog second(1);
    std::string error;
    {
        auto writer = LogWriter::start(path, {&first, &second}, error);
        LAW(writer != nullptr, << error);
        for (unsigned i = 0; i < 500; ++i) first.on_answer(event_of("GET /first HTTP/1.1"));
        std::thread other([&] {
            for (unsigned i = 0; i < 500; ++i) second.on_answer(event_of("GET /second HTTP/1.1"));
        });
        other.join();
        for (unsigned i = 0; i < 2000 && lines_of(text_of(path)) < 1000; ++i) usleep(10000);
        std::rename(path.c_str(), (path + ".1").c_str());
        writer->reopen();
        for (unsigned i = 0; i < 2000 && access(path.c_str(), F_OK) != 0; ++i) usleep(10000);
        first.on_answer(event_of("GET /third HTTP/1.1"));
    }
    const auto lines = lines_of(text_of(path + ".1"));
    LAW(lines == 1000 && first.lost() + second.lost() == 0, << lines);
    LAW(text_of(path).find("GET /third ") != std::string::npos);
    unlink(path.c_str());
    unlink((path + ".1").c_str());
    LAW(LogWriter::start("/nowhere/log", {}, error) == nullptr &&
        error.find("/nowhere/log") != std::string::npos);
}

}  // namespace
}  // namespace httpmark
