// The server's parser against the oracle: for every input both must give the same verdict, after
// the same byte, for the same kind of reason, with the same fields; for every kernel, whole and
// byte by byte.
//
// HTTPMARK_ORACLE_SEED  seed of the random tests (printed first; default fixed)
// HTTPMARK_ORACLE_RUNS  inputs of each of the big random tests (default 300000)
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "comparison.hpp"
#include "inputs.hpp"

namespace httpmark {
namespace {

using namespace std::string_literals;

TEST(ServerAgrees, OnEveryPrefixOfTheBases) {
    for (const Setting& setting : settings()) {
        for (const auto& base : base_requests()) {
            if (!check(head_difference, base, setting, Depth::kEveryPrefix)) return;
        }
        for (const auto& base : base_bodies()) {
            if (!check(chunked_difference, base, setting, Depth::kEveryPrefix)) return;
        }
    }
}

// 413 for a length beyond 2^63-1 comes after 400 for lengths that differ, 501 and 421.
TEST(ServerAgrees, OnLengthsBeyondTheHighest) {
    for (const Setting& setting : settings()) {
        for (const char* line : {"GET /", "BREW /", "GET https://b/"}) {
            for (const char* lengths :
                 {"9223372036854775808", "9223372036854775807, 92233720368547758079",
                  "92233720368547758079, 9223372036854775807",
                  "9223372036854775808, 09223372036854775808"}) {
                const std::string input =
                    with_host(line + " HTTP/1.1"s, "Content-Length: "s + lengths + "\r\n");
                if (!check(head_difference, input, setting, Depth::kEveryPrefix)) return;
            }
        }
    }
}

// Every byte value put in place of each byte and before each, and each byte left out.
void edit_everywhere(Compare compare, const std::vector<std::string>& bases,
                     const Setting& setting) {
    for (const auto& base : bases) {
        for (std::size_t at = 0; at <= base.size(); ++at) {
            for (int value = 0; value < 256; ++value) {
                std::string input = base;
                input.insert(at, 1, static_cast<char>(value));
                if (!check(compare, input, setting, Depth::kOctetByOctet)) return;
                if (at == base.size() || base[at] == static_cast<char>(value)) continue;
                input = base;
                input[at] = static_cast<char>(value);
                if (!check(compare, input, setting, Depth::kOctetByOctet)) return;
            }
            std::string input = base;
            if (at < base.size()) input.erase(at, 1);
            if (!check(compare, input, setting, Depth::kOctetByOctet)) return;
        }
    }
}

TEST(ServerAgrees, OnEverySingleOctetEditOfHeads) {
    edit_everywhere(head_difference, base_requests(), strict());
}

TEST(ServerAgrees, OnEverySingleOctetEditOfChunkedBodies) {
    edit_everywhere(chunked_difference, base_bodies(), strict());
}

// "%" at offset `percent` of the request, in the path and in the query.
TEST(ServerAgrees, OnEveryPercentPairAroundBlockEdges) {
    for (const bool in_query : {false, true}) {
        for (const std::size_t percent : {15U, 16U, 17U, 31U, 32U, 33U, 63U, 64U, 65U}) {
            std::string input = "GET /";
            if (in_query) input += "?";
            input.append(percent - input.size(), 'a');
            input += "%..b HTTP/1.1\r\nHost: a\r\n\r\n";
            for (int pair = 0; pair < 65536; ++pair) {
                input[percent + 1] = static_cast<char>(pair >> 8);
                input[percent + 2] = static_cast<char>(pair & 0xFF);
                if (!check(head_difference, input, strict(), Depth::kWhole)) return;
            }
        }
    }
}

// Every byte at every place of the first two blocks: as a digit after "%", in a target, in a
// field name and in a field value. A wrong entry in one lane of one table shows here.
TEST(ServerAgrees, OnEveryOctetAtEveryPlaceOfABlock) {
    struct Slot {
        std::string before;
        char filler;
        std::string marker;
        std::string after;
    };
    const std::string end = " HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
    const std::vector<Slot> slots = {
        {"GET /", 'a', "%", "0" + end},  {"GET /", 'a', "%0", end},
        {"GET /?", 'a', "%", "0" + end}, {"GET /?", 'a', "%0", end},
        {"GET /", 'a', "", end},         {"GET /?", 'a', "", end},
        {get, 'n', "n", "n: v\r\n\r\n"}, {get + "n:", 'v', "v", "v\r\n\r\n"}};
    for (const Slot& slot : slots) {
        for (std::size_t at = slot.before.size() + slot.marker.size(); at < 194; ++at) {
            std::string input = slot.before;
            input.append(at - slot.before.size() - slot.marker.size(), slot.filler);
            input += slot.marker + '?' + slot.after;
            for (int value = 0; value < 256; ++value) {
                input[at] = static_cast<char>(value);
                if (!check(head_difference, input, strict(), Depth::kWhole)) return;
            }
        }
    }
}

TEST(ServerAgrees, OnWordsInEverySlot) {
    Dice dice(seed() + 1);
    const std::string get = "GET / HTTP/1.1\r\n";
    const std::string host = "Host: a\r\n";
    using Make = std::function<std::string()>;
    const auto field = [&](const std::string& line, const std::string& name,
                           const std::vector<std::string>& vocabulary, std::size_t most) -> Make {
        return [&dice, line, name, &vocabulary, most] {
            std::string input = line;
            do {
                input += name + ":" + words_from(dice, vocabulary, most) + "\r\n";
            } while (dice.one_in(4));
            return input + "\r\n";
        };
    };
    const std::vector<Make> makers = {
        field(get, "Host", host_words(), 9),
        field("GET / HTTP/1.0\r\n", "Host", host_words(), 4),
        [&] { return get + "Host: [" + dice.run("0:1.f:", dice.below(22)) + "]\r\n\r\n"; },
        [&] {
            return get + "Host: [::" + dice.run("0123456789.", 5 + dice.below(11)) + "]\r\n\r\n";
        },
        field(get + host, "Transfer-Encoding", coding_words(), 7),
        field("POST / HTTP/1.0\r\n" + host, "Transfer-Encoding", coding_words(), 3),
        field(get + host, "Content-Length", length_words(), 4),
        field(get + host + "Transfer-Encoding: chunked\r\n", "Content-Length", length_words(), 2),
        field(get + host, "Expect", expect_words(), 5),
        field(get + host, "Connection", connection_words(), 6),
        field("GET / HTTP/1.0\r\n" + host, "Connection", connection_words(), 6),
        [&] {
            static const std::array<std::string_view, 5> kMethods = {"GET", "OPTIONS", "CONNECT",
                                                                     "POST", "X"};
            return std::string(dice.one_of(kMethods)) + " " + words_from(dice, target_words(), 8) +
                   " HTTP/1.1\r\nHost: a\r\n\r\n";
        },
        [&] {
            return "GET http://" + words_from(dice, target_words(), 6) +
                   " HTTP/1.1\r\nHost: a\r\n\r\n";
        },
        [&] {
            return "CONNECT " + words_from(dice, host_words(), 6) + " HTTP/1.1\r\nHost: a\r\n\r\n";
        },
        [&] { return "GET / " + words_from(dice, version_words(), 5) + "\r\nHost: a\r\n\r\n"; },
    };
    for (std::uint64_t run = 0; run < runs() / 2; ++run) {
        const std::string input = makers[run % makers.size()]();
        const Setting& setting = settings()[dice.below(4)];
        if (!check(head_difference, input, setting, sometimes_deep(dice))) return;
    }
    for (std::uint64_t run = 0; run < runs() / 2; ++run) {
        const std::string input = words_from(dice, chunk_words(), 14);
        if (!check(chunked_difference, input, dice.one_of(settings()), sometimes_deep(dice)))
            return;
    }
}

TEST(ServerAgrees, OnGeneratedAndHarmedRequests) {
    Dice dice(seed() + 2);
    std::string other = base_requests().front();
    for (std::uint64_t run = 0; run < runs(); ++run) {
        std::string input = dice.one_in(4) ? dice.one_of(base_requests()) : some_request(dice);
        const std::string whole = input;
        for (std::size_t harms = dice.below(4); harms > 0; --harms) {
            input = harmed(dice, input, other);
        }
        other = whole;
        if (!check(head_difference, input, dice.one_of(settings()), sometimes_deep(dice))) return;
    }
}

TEST(ServerAgrees, OnGeneratedAndHarmedChunkedBodies) {
    Dice dice(seed() + 3);
    std::string other = base_bodies().front();
    for (std::uint64_t run = 0; run < runs() / 2; ++run) {
        std::string input = dice.one_in(4) ? dice.one_of(base_bodies()) : some_body(dice);
        const std::string whole = input;
        for (std::size_t harms = dice.below(4); harms > 0; --harms) {
            input = harmed(dice, input, other);
        }
        other = whole;
        if (!check(chunked_difference, input, dice.one_of(settings()), sometimes_deep(dice)))
            return;
    }
}

// Around each default limit: one below, at it and one above.
TEST(ServerAgrees, OnTheEdgesOfTheLimits) {
    const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (const std::size_t more : {0U, 1U, 2U, 3U}) {
        std::string lines;
        for (std::size_t i = 0; i < 97 + more; ++i) lines += "x: y\r\n";
        std::string filler;
        for (int i = 0; i < 4; ++i) filler += "x:" + std::string(8000, 'v') + "\r\n";
        const std::string head = get + filler + "y:";
        std::string trailers = "x:" + std::string(8100, 'v') + "\r\n";
        trailers += trailers + "y:";
        const std::vector<std::string> heads = {
            std::string(30 + more, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n",
            std::string(30 + more, 'M') + "@ / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /" + std::string(8189 + more, 't') + " HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /" + std::string(8189 + more, 't') + "\" HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://" + std::string(8179 + more, 't') + " HTTP/1.1\r\nHost: a\r\n\r\n",
            get + std::string(254 + more, 'n') + ": v\r\n\r\n",
            get + std::string(254 + more, 'n') + " : v\r\n\r\n",
            get + "n:" + std::string(8190 + more, 'v') + "\r\n\r\n",
            get + "n:" + std::string(8190 + more, ' ') + "\r\n\r\n",
            get + "n:" + std::string(8190 + more, 'v') + "\n\r\n\r\n",
            get + lines + "\r\n",
            get + lines + " z\r\n\r\n",
            head + std::string(32768 - head.size() - 6 + more, 'v') + "\r\n\r\n",
            "\r\n" + head + std::string(32768 - head.size() - 8 + more, 'v') + "\r\n\r\n",
            "\r\n" + head + std::string(32768 - head.size() - 6 + more, 'v') + "\r\n\r\n",
            head + std::string(32768 - head.size() - 2 + more, 'v') + "\x01\r\n\r\n",
        };
        for (const auto& input : heads) {
            if (!check(head_difference, input, strict(), Depth::kOctetByOctet)) return;
        }
        const std::vector<std::string> bodies = {
            std::string(1020 + more, '0') + "\r\n\r\n",
            "1;" + std::string(1018 + more, 'a') + "\r\nx\r\n0\r\n\r\n",
            "1;" + std::string(1020 + more, 'a') + "@\r\nx\r\n0\r\n\r\n",
            "0\r\n" + lines + "x: y\r\n\r\n",
            "0\r\n" + trailers + std::string(16384 - trailers.size() - 6 + more, 'v') + "\r\n\r\n",
            "0\r\n" + std::string(254 + more, 'n') + ": v\r\n\r\n",
            "0\r\nn:" + std::string(8190 + more, 'v') + "\r\n\r\n",
        };
        for (const auto& input : bodies) {
            if (!check(chunked_difference, input, strict(), Depth::kOctetByOctet)) return;
        }
    }
}

}  // namespace
}  // namespace httpmark

int main(int argc, char** argv) {
    std::printf("HTTPMARK_ORACLE_SEED=%llu HTTPMARK_ORACLE_RUNS=%llu kernels:",
                static_cast<unsigned long long>(httpmark::seed()),
                static_cast<unsigned long long>(httpmark::runs()));
    for (const auto* kernel : httpmark::kernels()) std::printf(" %s", kernel->name);
    std::printf("\n");
    ::testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    const auto& tally = httpmark::tally;
    std::printf(
        "inputs %llu (accepted %llu, rejected %llu, undecided %llu), verdicts compared %llu, "
        "reasons seen %zu\n",
        static_cast<unsigned long long>(tally.inputs),
        static_cast<unsigned long long>(tally.accepted),
        static_cast<unsigned long long>(tally.rejected),
        static_cast<unsigned long long>(tally.undecided),
        static_cast<unsigned long long>(tally.verdicts), tally.reasons.size());
    return result;
}
