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

AnswerEvent event_of(std::string_view target) {
    AnswerEvent event{};
    event.peer = "127.0.0.1:4";
    event.unix_seconds = 784111777;
    event.method = "GET";
    event.target = target;
    event.version = "HTTP/1.1";
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
    log.on_answer(event_of("/hello?a=%22"));
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

TEST(Log, a_full_ring_loses_whole_lines_and_counts_them) {
    AccessLog log(0);
    const std::string target(997, 'a');
    unsigned lines = 0;
    for (; log.lost() == 0; ++lines) log.on_answer(event_of(target));
    log.on_answer(event_of(target));
    LAW(log.lost() == 2);
    const std::string text = all_of(log.ring());
    const std::size_t size = text.find('\n') + 1;
    LAW(text.size() == (lines - 1) * size && text.size() + size > LogRing::kSize);
    // Room again, over the seam of the ring.
    for (unsigned i = 0; i < 1000; ++i) {
        log.on_answer(event_of("/" + std::to_string(i)));
        const std::string line = all_of(log.ring());
        LAW(line.find(" /" + std::to_string(i) + " ") != std::string::npos && line.ends_with("-\n"),
            << line);
    }
    LAW(log.lost() == 2);
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
        for (unsigned i = 0; i < 500; ++i) first.on_answer(event_of("/first"));
        std::thread other([&] {
            for (unsigned i = 0; i < 500; ++i) second.on_answer(event_of("/second"));
        });
        other.join();
        for (unsigned i = 0; i < 2000 && lines_of(text_of(path)) < 1000; ++i) usleep(10000);
        std::rename(path.c_str(), (path + ".1").c_str());
        writer->reopen();
        for (unsigned i = 0; i < 2000 && access(path.c_str(), F_OK) != 0; ++i) usleep(10000);
        first.on_answer(event_of("/third"));
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
