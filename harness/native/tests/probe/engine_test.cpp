// The five outcomes and the three ends, on the wire.
#include "probe/engine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/un.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "shared/clock.hpp"
#include "tests/shared/scripted_server.hpp"

namespace httpmark {
namespace {

std::string u32(std::uint32_t value) {
    std::string out;
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return out;
}
std::string op(int code, std::uint32_t n) {
    return static_cast<char>(code) + u32(n);
}
std::string send_step(const std::string& octets, int flag = 0) {
    return op(1 | flag, static_cast<std::uint32_t>(octets.size())) + octets;
}
std::string await_step(std::uint32_t ms, int kind = 0, int flag = 0) {
    return op(3 | flag, ms) + static_cast<char>(kind);
}

struct CaseText {
    std::vector<std::string> steps;
    std::uint32_t deadline_ms = 2000;
    std::uint32_t settle_ms = 0;
    std::uint32_t close_ms = 500;
    int flags = 0;
};

std::string frame(std::uint32_t number, const CaseText& text) {
    std::string body = u32(number) + u32(text.deadline_ms) + u32(text.settle_ms) +
                       u32(text.close_ms) + static_cast<char>(text.flags) + '\0' +
                       static_cast<char>(text.steps.size()) + '\0';
    for (const std::string& step : text.steps) body += step;
    return u32(static_cast<std::uint32_t>(body.size())) + body;
}

struct Seen {
    Outcome outcome = Outcome::kHung;
    End end = End::kOpen;
    int flags = 0;
    int steps = 0;
    std::uint32_t first_us = 0;
    std::uint32_t end_us = 0;
    std::uint32_t sent = 0;
    std::uint64_t ended_unix_us = 0;
    int finals = 0;
    std::string received;
    std::string events;  // the kinds
};

std::map<std::uint32_t, Seen> parse(const std::string& out) {
    const auto number = [&](std::size_t at, int octets) {
        std::uint32_t value = 0;
        for (int i = octets; i-- > 0;) {
            value =
                value << 8 | static_cast<unsigned char>(out.at(at + static_cast<std::size_t>(i)));
        }
        return value;
    };
    std::map<std::uint32_t, Seen> all;
    for (std::size_t at = 0; at < out.size();) {
        const std::size_t length = number(at, 4);
        at += 4;
        Seen seen;
        seen.outcome = static_cast<Outcome>(number(at + 4, 1));
        seen.end = static_cast<End>(number(at + 5, 1));
        seen.flags = static_cast<int>(number(at + 6, 1));
        seen.steps = static_cast<int>(number(at + 7, 1));
        seen.first_us = number(at + 12, 4);
        seen.end_us = number(at + 16, 4);
        seen.sent = number(at + 20, 4);
        const std::size_t received = number(at + 24, 4);
        const std::size_t events = number(at + 28, 2);
        seen.finals = static_cast<int>(number(at + 30, 2));
        seen.ended_unix_us = std::uint64_t{number(at + 36, 4)} << 32 | number(at + 32, 4);
        seen.received = out.substr(at + 40, received);
        for (std::size_t i = 0; i < events; ++i) {
            seen.events += static_cast<char>('0' + out.at(at + 40 + received + 9 * i));
        }
        EXPECT_EQ(length, 40 + received + 9 * events);
        const std::uint32_t case_number = number(at, 4);
        EXPECT_EQ(all.count(case_number), 0u);
        all[case_number] = seen;
        at += length;
    }
    return all;
}

// Plays the frames through pipes, as the harness does.
std::map<std::uint32_t, Seen> play_frames(const Endpoint& server, const std::string& frames,
                                          ProbeOptions options = {}, int* code = nullptr) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) std::abort();
    options.server = server;
    options.input_fd = in[0];
    options.output_fd = out[1];
    std::thread writer([&] {
        std::string_view rest = frames;
        while (!rest.empty()) {
            const ssize_t sent = write(in[1], rest.data(), rest.size());
            if (sent <= 0) break;
            rest.remove_prefix(static_cast<std::size_t>(sent));
        }
        close(in[1]);
    });
    std::string all;
    std::thread reader([&] {
        char buffer[65536];
        for (;;) {
            const ssize_t got = read(out[0], buffer, sizeof buffer);
            if (got <= 0) break;
            all.append(buffer, static_cast<std::size_t>(got));
        }
    });
    int result = 0;
    {
        ProbeEngine engine(options);
        result = engine.run();
    }
    close(out[1]);
    close(in[0]);
    writer.join();
    reader.join();
    close(out[0]);
    if (code != nullptr) {
        *code = result;
    } else {
        EXPECT_EQ(result, 0);
    }
    return parse(all);
}

Seen play_one(const ScriptedServer::Play& play, const CaseText& text) {
    ScriptedServer server(play);
    const auto all = play_frames(server.endpoint(), frame(7, text));
    EXPECT_EQ(all.size(), 1u);
    return all.count(7) != 0 ? all.at(7) : Seen();
}

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kBad =
    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

TEST(ProbeEngine, an_answer_on_a_connection_that_stays_open) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, kOk);
            hear_heads(fd, 1);
        },
        {{send_step(kGet), await_step(1000)}});
    EXPECT_EQ(seen.outcome, Outcome::kAnswered);
    EXPECT_EQ(seen.end, End::kOpen);
    EXPECT_EQ(seen.flags, 0);
    EXPECT_EQ(seen.received, kOk);
    EXPECT_EQ(seen.finals, 1);
    EXPECT_EQ(seen.steps, 2);
    EXPECT_EQ(seen.sent, kGet.size());
    EXPECT_LT(seen.end_us, 900'000u);
}

TEST(ProbeEngine, an_announced_close_is_waited_for) {
    const std::uint64_t before_us = unix_us();
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, kBad);
            usleep(50'000);
        },
        {{send_step(kGet), await_step(1000)}, 2000, 0, 500, 2});
    EXPECT_EQ(seen.outcome, Outcome::kAnswered);
    EXPECT_EQ(seen.end, End::kClosed);
    EXPECT_EQ(seen.flags, kExchangeAnnouncedClose);
    EXPECT_GE(seen.end_us, 50'000u);
    EXPECT_GE(seen.ended_unix_us, before_us + 50'000u);
    EXPECT_LE(seen.ended_unix_us, unix_us());
    EXPECT_EQ(seen.events, "123");
}

TEST(ProbeEngine, saying_close_and_staying_open_is_no_close) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, kBad);
            hear_heads(fd, 1);
        },
        {{send_step(kGet), await_step(1000)}, 2000, 0, 100});
    EXPECT_EQ(seen.end, End::kOpen);
    EXPECT_EQ(seen.flags, kExchangeAnnouncedClose);
    EXPECT_GE(seen.end_us, 100'000u);
}

TEST(ProbeEngine, a_close_without_an_octet) {
    const Seen seen =
        play_one([](int fd) { hear_heads(fd, 1); }, {{send_step(kGet), await_step(1000)}});
    EXPECT_EQ(seen.outcome, Outcome::kClosed);
    EXPECT_EQ(seen.end, End::kClosed);
    EXPECT_EQ(seen.first_us, kNever);
}

TEST(ProbeEngine, a_reset_without_an_octet) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            reset_connection(fd);
        },
        {{send_step(kGet), await_step(1000)}});
    EXPECT_EQ(seen.outcome, Outcome::kReset);
    EXPECT_EQ(seen.end, End::kReset);
}

TEST(ProbeEngine, an_answer_and_then_a_reset_is_an_answer) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, kOk);
            usleep(20'000);
            reset_connection(fd);
        },
        {{send_step(kGet), await_step(1000)}, 2000, 300});
    EXPECT_EQ(seen.outcome, Outcome::kAnswered);
    EXPECT_EQ(seen.end, End::kReset);
    EXPECT_EQ(seen.received, kOk);
}

TEST(ProbeEngine, a_hang_is_never_a_close) {
    const Seen seen =
        play_one([](int fd) { hear_heads(fd, 99); }, {{send_step(kGet), await_step(150)}, 2000});
    EXPECT_EQ(seen.outcome, Outcome::kHung);
    EXPECT_EQ(seen.end, End::kOpen);
    EXPECT_EQ(seen.flags, kExchangeAwaitRanOut | kExchangeReached);
    EXPECT_GE(seen.end_us, 150'000u);
    EXPECT_LT(seen.end_us, 1'500'000u);
}

TEST(ProbeEngine, what_the_other_end_does_not_take_has_not_reached_it) {
    const auto reads_nothing = [](int fd) {
        pollfd broken = {fd, 0, 0};
        poll(&broken, 1, 5000);
    };
    // More than all buffers between the two can hold.
    const std::string much(std::size_t{64} << 20, 'x');
    const Seen seen = play_one(reads_nothing, {{send_step(much), await_step(1000)}, 400});
    EXPECT_EQ(seen.outcome, Outcome::kHung);
    EXPECT_GT(seen.sent, 0u);
    EXPECT_EQ(seen.flags & kExchangeReached, 0);
}

TEST(ProbeEngine, the_deadline_ends_a_case_as_it_stands) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, "HTTP/1.1 200 OK\r\n");
            hear_heads(fd, 99);
        },
        {{send_step(kGet), await_step(5000), send_step("more")}, 150});
    EXPECT_EQ(seen.outcome, Outcome::kAnswered);
    EXPECT_EQ(seen.flags, kExchangeDeadline);
    EXPECT_EQ(seen.steps, 1);
    EXPECT_EQ(seen.received, "HTTP/1.1 200 OK\r\n");
}

// The probe is held up while a server is in time: by a signal whose handler sleeps.
TEST(ProbeEngine, nobody_is_late_because_the_probe_did_not_run) {
    struct sigaction sleeps = {};
    struct sigaction before = {};
    sleeps.sa_handler = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(400)); };
    ASSERT_EQ(sigaction(SIGUSR1, &sleeps, &before), 0);
    const pthread_t probe = pthread_self();
    const Seen seen = play_one(
        [probe](int fd) {
            hear_heads(fd, 1);
            pthread_kill(probe, SIGUSR1);
            std::this_thread::sleep_for(std::chrono::milliseconds(450));
            say(fd, kOk);
            hear_heads(fd, 9);
        },
        {{send_step(kGet), await_step(200)}, 300});
    sigaction(SIGUSR1, &before, nullptr);
    EXPECT_EQ(seen.outcome, Outcome::kAnswered);
    EXPECT_EQ(seen.flags, kExchangeHeldUp);
    EXPECT_GE(seen.end_us, 440'000u);
}

TEST(ProbeEngine, nobody_listens) {
    Endpoint nobody;
    {
        ScriptedServer server([](int) {});
        nobody = server.endpoint();
    }
    std::string frames;
    for (std::uint32_t i = 0; i < 500; ++i)
        frames += frame(i, {{send_step(kGet), await_step(1000)}});
    const auto begin = std::chrono::steady_clock::now();
    const auto all = play_frames(nobody, frames);
    EXPECT_EQ(all.size(), 500u);
    for (const auto& [number, seen] : all) {
        EXPECT_EQ(seen.outcome, Outcome::kRefused);
        EXPECT_EQ(seen.flags, kExchangeUnsent);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(ProbeEngine, a_canary_only_while_the_connection_is_open) {
    const auto answers = [](const std::string& first) {
        return [first](int fd) {
            hear_heads(fd, 1);
            say(fd, first);
            if (first == kOk) {
                hear_heads(fd, 1);
                say(fd, kOk);
                hear_heads(fd, 1);
            } else {
                usleep(100'000);
            }
        };
    };
    const CaseText text = {
        {send_step(kGet), await_step(1000), send_step(kGet, 0x80), await_step(1000, 0, 0x80)}};
    const Seen open = play_one(answers(kOk), text);
    EXPECT_EQ(open.received, kOk + kOk);
    EXPECT_EQ(open.finals, 2);
    EXPECT_EQ(open.sent, 2 * kGet.size());
    const Seen announced = play_one(answers(kBad), text);
    EXPECT_EQ(announced.received, kBad);
    EXPECT_EQ(announced.sent, kGet.size());
    EXPECT_EQ(announced.steps, 4);
    EXPECT_EQ(announced.end, End::kClosed);
}

TEST(ProbeEngine, each_awaited_response_knows_its_request) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    const Seen seen = play_one(
        [&](int fd) {
            hear_heads(fd, 2);
            say(fd, kOk + head);
            hear_heads(fd, 9);
        },
        {{send_step(kGet + kGet), await_step(1000), await_step(1000, 1)}});
    EXPECT_EQ(seen.finals, 2);
    EXPECT_EQ(seen.flags, 0);
    EXPECT_LT(seen.end_us, 900'000u);
}

// A server that says 100 Continue and answers when it has read some content.
void continues(int fd) {
    hear_heads(fd, 1);
    say(fd, "HTTP/1.1 100 Continue\r\n\r\n");
    char buffer[16];
    if (recv(fd, buffer, sizeof buffer, 0) > 0) say(fd, kOk);
    hear_heads(fd, 9);
}

TEST(ProbeEngine, a_look_leaves_the_answer_to_the_await) {
    const Seen seen = play_one(continues, {{send_step(kGet), await_step(1000, 5), send_step("body"),
                                            await_step(1000, 4), await_step(1000)}});
    EXPECT_EQ(seen.finals, 1);
    EXPECT_EQ(seen.flags, 0);
    EXPECT_LT(seen.end_us, 900'000u);
    // An interim answer is no final one, and a look that runs out is no failed wait.
    const Seen looked = play_one(
        continues, {{send_step(kGet), await_step(100, 4), send_step("body"), await_step(1000)}});
    EXPECT_EQ(looked.finals, 1);
    EXPECT_EQ(looked.flags, kExchangeLookRanOut);
    EXPECT_GT(looked.end_us, 90'000u);
}

std::string many(std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

TEST(ProbeEngine, answers_without_number_cost_what_they_weigh) {
    const auto after = [](const std::string& answers) {
        return [&answers](int fd) {
            hear_heads(fd, 1);
            say(fd, answers);
        };
    };
    const std::string interim = "HTTP/1.1 100 \r\n\r\n";
    // So long that so many responses are no flood. To look at all of them again for each that comes
    // took 24 s.
    const std::string request =
        "GET / HTTP/1.1\r\nHost: a\r\nX: " + many("x", 3'200'000) + "\r\n\r\n";
    const std::clock_t begun = std::clock();  // of the processors: a busy machine changes nothing
    const Seen seen = play_one(after(many(interim, 400'000) + kOk),
                               {{send_step(request), await_step(20'000)}, 30'000});
    EXPECT_EQ(seen.finals, 1);
    EXPECT_EQ(seen.flags & kExchangeDeadline, 0);
    EXPECT_LT(std::clock() - begun, 5 * CLOCKS_PER_SEC);
    // The most that there is room for stands for more.
    const Seen all = play_one(after(many(kOk, 70'000)),
                              {{send_step(request), await_step(1000)}, 30'000, 20'000});
    EXPECT_EQ(all.end, End::kClosed);
    EXPECT_EQ(all.finals, 65'535);
    // Who was asked once and answers thousands of times is left.
    for (const std::string& answer : {interim, kOk}) {
        const Seen left = play_one(after(many(answer, 200'000)),
                                   {{send_step(kGet), await_step(1000)}, 30'000, 20'000});
        EXPECT_EQ(left.flags & (kExchangeCut | kExchangeDeadline),
                  kExchangeCut | kExchangeDeadline);
        EXPECT_LT(left.received.size(), 200'000u);
    }
}

TEST(ProbeEngine, a_server_that_sends_without_end_is_left) {
    std::string frames;
    for (std::uint32_t i = 0; i < 200; ++i) {
        frames += frame(i, {{send_step(kGet), await_step(5000)}, 10'000});
    }
    ScriptedServer server([](int fd) {
        hear_heads(fd, 1);
        const std::string block(1 << 20, 'x');
        say(fd, "HTTP/1.1 200 OK\r\n\r\n");
        for (int i = 0; i < 40; ++i) say(fd, block);
    });
    int code = 0;
    const auto all = play_frames(server.endpoint(), frames, {}, &code);
    EXPECT_EQ(code, 3);
    EXPECT_LT(all.size(), 200u);
}

// A server may read what a message announced before it closes (RFC 9112 9.6).
TEST(ProbeEngine, announced_octets_go_to_a_server_that_announced_close_and_reads_on) {
    const CaseText text = {{send_step(kGet), await_step(1000, 4), send_step("more", 0x20),
                            await_step(1000), send_step(kGet, 0x80)},
                           3000,
                           0,
                           1500};
    const auto lingers = [](int fd) {
        hear_heads(fd, 1);
        say(fd, kBad);
        char octets[4];
        recv(fd, octets, sizeof octets, MSG_WAITALL);
    };
    const Seen seen = play_one(lingers, text);
    EXPECT_EQ(seen.received, kBad);
    EXPECT_EQ(seen.sent, kGet.size() + 4);
    EXPECT_EQ(seen.end, End::kClosed);
    EXPECT_LT(seen.end_us, 1'000'000u);
    // Whoever closes at once gets nothing more, which would make a reset of the close.
    const auto closes = [](int fd) {
        hear_heads(fd, 1);
        say(fd, kBad);
        usleep(10'000);
    };
    const Seen closed = play_one(closes, text);
    EXPECT_EQ(closed.sent, kGet.size());
    EXPECT_EQ(closed.end, End::kClosed);
    EXPECT_EQ(closed.flags, kExchangeAnnouncedClose);
}

TEST(ProbeEngine, octets_only_for_a_server_that_still_waits) {
    const CaseText text = {{send_step(kGet), await_step(100), send_step("more", 0x40),
                            await_step(1000, 0, 0x40), send_step(kGet, 0x80),
                            await_step(1000, 0, 0x80)}};
    const auto waits = [](int fd) {
        hear_heads(fd, 1);
        char buffer[4];
        if (recv(fd, buffer, sizeof buffer, MSG_WAITALL) == 4) say(fd, kOk);
        hear_heads(fd, 1);
        say(fd, kOk);
        hear_heads(fd, 1);
    };
    const Seen waited = play_one(waits, text);
    EXPECT_EQ(waited.finals, 2);
    EXPECT_EQ(waited.sent, 2 * kGet.size() + 4);
    const auto answers = [](int fd) {
        for (int i = 0; i < 2; ++i) {
            hear_heads(fd, 1);
            say(fd, kOk);
        }
        hear_heads(fd, 1);
    };
    const Seen answered = play_one(answers, text);
    EXPECT_EQ(answered.finals, 2);
    EXPECT_EQ(answered.sent, 2 * kGet.size());
}

TEST(ProbeEngine, interim_answers_count_only_where_any_answer_does) {
    const Seen seen = play_one(
        continues, {{send_step(kGet), await_step(1000, 3), send_step("body"), await_step(1000)}});
    EXPECT_EQ(seen.finals, 1);
    EXPECT_EQ(seen.flags, 0);
    const Seen waited = play_one(continues, {{send_step(kGet), await_step(100)}});
    EXPECT_EQ(waited.finals, 0);
    EXPECT_EQ(waited.flags, kExchangeAwaitRanOut);
}

TEST(ProbeEngine, a_wait_that_runs_out_leaves_the_answer_to_the_next) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, kOk);
            hear_heads(fd, 9);
        },
        {{send_step("GET / HTTP/1.1\r\n"), await_step(80), send_step("Host: a\r\n\r\n"),
          await_step(1000)}});
    EXPECT_EQ(seen.flags, kExchangeAwaitRanOut);
    EXPECT_EQ(seen.finals, 1);
    EXPECT_EQ(seen.received, kOk);
    EXPECT_LT(seen.end_us, 900'000u);
}

TEST(ProbeEngine, the_head_alone_satisfies_where_the_case_says_so) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\npart");
            hear_heads(fd, 9);
        },
        {{send_step(kGet), await_step(1000)}, 2000, 0, 0, 1});
    EXPECT_EQ(seen.finals, 1);
    EXPECT_EQ(seen.flags, 0);
    EXPECT_LT(seen.end_us, 900'000u);
}

TEST(ProbeEngine, settling_sees_surplus_and_late_closes) {
    const Seen seen = play_one(
        [](int fd) {
            hear_heads(fd, 1);
            say(fd, kOk);
            usleep(50'000);
            say(fd, kOk);
        },
        {{send_step(kGet), await_step(1000)}, 2000, 300});
    EXPECT_EQ(seen.received, kOk + kOk);
    EXPECT_EQ(seen.end, End::kClosed);
}

TEST(ProbeEngine, a_half_close_is_seen_and_answered) {
    bool saw_end = false;
    const Seen seen = play_one(
        [&](int fd) {
            hear_heads(fd, 2);  // returns at the FIN
            saw_end = true;
            say(fd, kOk);
        },
        {{send_step(kGet), op(4, 0), await_step(1000), op(7, 1000)}, 3000, 0, 0, 2});
    EXPECT_TRUE(saw_end);
    EXPECT_EQ(seen.received, kOk);
    EXPECT_EQ(seen.end, End::kClosed);
    EXPECT_EQ(seen.events, "1523");
}

TEST(ProbeEngine, a_reset_of_ours_reaches_the_server) {
    int error = 0;
    const Seen seen = play_one(
        [&](int fd) {
            hear_heads(fd, 1);
            char octet = 0;
            if (recv(fd, &octet, 1, 0) < 0) error = errno;
        },
        {{send_step(kGet), op(2, 50), op(5, 0), send_step("never")}});
    EXPECT_EQ(error, ECONNRESET);
    EXPECT_EQ(seen.outcome, Outcome::kHung);
    EXPECT_EQ(seen.steps, 3);
}

TEST(ProbeEngine, a_pause_lasts_and_separates_writes) {
    std::string first;
    const Seen seen = play_one(
        [&](int fd) {
            char buffer[64];
            const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
            first.assign(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
            hear_heads(fd, 1);
            say(fd, kOk);
            hear_heads(fd, 9);
        },
        {{send_step("GE"), op(2, 80), send_step(kGet.substr(2)), await_step(1000)}});
    EXPECT_EQ(first, "GE");
    EXPECT_EQ(seen.outcome, Outcome::kAnswered);
    EXPECT_GE(seen.end_us, 80'000u);
}

TEST(ProbeEngine, what_could_not_be_sent_is_said_and_the_answer_before_it_kept) {
    const Seen seen = play_one(
        [](int fd) {
            char buffer[64];
            if (recv(fd, buffer, sizeof buffer, 0) <= 0) return;
            say(fd, kBad);
            reset_connection(fd);  // the kernel sends the answer and then the reset
        },
        {{send_step("POST"), op(2, 50), send_step(std::string(1 << 20, 'x')), await_step(1000)}});
    EXPECT_EQ(seen.outcome, Outcome::kAnswered);
    EXPECT_EQ(seen.end, End::kReset);
    EXPECT_NE(seen.flags & kExchangeUnsent, 0);
}

TEST(ProbeEngine, a_long_send_goes_out_while_answers_come_in) {
    const std::string body(3 << 20, 'x');
    std::size_t heard = 0;
    const Seen seen = play_one(
        [&](int fd) {
            std::vector<char> buffer(65536);
            while (heard < body.size()) {
                const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
                if (got <= 0) return;
                heard += static_cast<std::size_t>(got);
                say(fd, std::string(1000, 'y'));
            }
            say(fd, "end");
        },
        {{send_step(body), op(7, 2000)}, 5000});
    EXPECT_EQ(heard, body.size());
    EXPECT_EQ(seen.sent, body.size());
    EXPECT_EQ(seen.received.substr(seen.received.size() - 3), "end");
}

TEST(ProbeEngine, too_much_is_cut_and_said) {
    const Seen seen = play_one([](int fd) { say(fd, std::string(kReceivedBytesMax + 100, 'x')); },
                               {{op(7, 3000)}, 4000});
    EXPECT_EQ(seen.received.size(), kReceivedBytesMax);
    EXPECT_EQ(seen.flags, kExchangeCut);
    EXPECT_EQ(seen.end, End::kClosed);
}

TEST(ProbeEngine, silent_cases_do_not_hold_up_the_others) {
    ScriptedServer server([](int fd) {
        const std::string heard = hear_heads(fd, 1);
        if (heard.find("silent") == std::string::npos) {
            say(fd, kBad);
        } else {
            hear_heads(fd, 9);
        }
    });
    std::string frames;
    for (std::uint32_t i = 0; i < 60; ++i) {
        const std::string get = i < 40 ? "GET /silent HTTP/1.1\r\n\r\n" : kGet;
        frames += frame(i, {{send_step(get), await_step(700)}, 1000});
    }
    ProbeOptions options;
    options.in_flight = 4;
    options.fresh_ms = 10;
    const auto begin = std::chrono::steady_clock::now();
    const auto all = play_frames(server.endpoint(), frames, options);
    ASSERT_EQ(all.size(), 60u);
    for (std::uint32_t i = 0; i < 60; ++i) {
        EXPECT_EQ(all.at(i).outcome, i < 40 ? Outcome::kHung : Outcome::kAnswered) << i;
    }
    // Four at a time would take ten times 700 ms.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(3000));
}

TEST(ProbeEngine, a_slow_reader_of_the_exchanges_gets_them_all) {
    ScriptedServer server([](int fd) {
        hear_heads(fd, 1);
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + std::string(60000, 'x'));
        hear_heads(fd, 9);
    });
    int in[2];
    int out[2];
    ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
    ProbeOptions options;
    options.server = server.endpoint();
    options.input_fd = in[0];
    options.output_fd = out[1];
    std::string frames;
    for (std::uint32_t i = 0; i < 150; ++i)
        frames += frame(i, {{send_step(kGet), await_step(1000)}});
    ASSERT_EQ(write(in[1], frames.data(), frames.size()), static_cast<ssize_t>(frames.size()));
    close(in[1]);
    std::thread probe([&] {
        ProbeEngine engine(options);
        EXPECT_EQ(engine.run(), 0);
        close(out[1]);
    });
    usleep(300'000);
    std::string all;
    char buffer[65536];
    for (;;) {
        const ssize_t got = read(out[0], buffer, sizeof buffer);
        if (got <= 0) break;
        all.append(buffer, static_cast<std::size_t>(got));
    }
    probe.join();
    close(out[0]);
    close(in[0]);
    const auto seen = parse(all);
    EXPECT_EQ(seen.size(), 150u);
    for (const auto& [number, exchange] : seen) EXPECT_EQ(exchange.finals, 1) << number;
}

TEST(ProbeEngine, bad_input_is_an_error_after_what_was_good) {
    ScriptedServer server([](int fd) {
        hear_heads(fd, 1);
        say(fd, kBad);
    });
    int code = 0;
    const std::string good = frame(1, {{send_step(kGet), await_step(1000)}});
    EXPECT_EQ(play_frames(server.endpoint(), good + u32(3) + "abc", {}, &code).size(), 1u);
    EXPECT_EQ(code, 2);
    EXPECT_EQ(play_frames(server.endpoint(), good + good.substr(0, 20), {}, &code).size(), 1u);
    EXPECT_EQ(code, 2);
    EXPECT_EQ(play_frames(server.endpoint(), "", {}, &code).size(), 0u);
    EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace httpmark
