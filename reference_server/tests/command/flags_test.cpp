// The table of flags, held against what --help lists and what the parsing takes.
#include "command/flags.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "command/help.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

// What the command says of these words; empty when it takes them.
struct Taken {
    bool ok;
    std::string complaint;
    Options options;
};
Taken take(const std::vector<std::string>& words) {
    std::vector<const char*> argv{"httpmark-server"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    Taken taken{};
    testing::internal::CaptureStderr();
    taken.ok = parse_options(static_cast<int>(argv.size()), argv.data(), taken.options);
    taken.complaint = testing::internal::GetCapturedStderr();
    return taken;
}
bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
std::string dashed(const Flag& flag) {
    return std::string("--") + flag.name;
}

// Flags that refuse a value for what it is not complain of that value; of anything else they may
// complain, such as that another flag is missing.
void expect_number(const Flag& flag, std::uint64_t lowest, std::uint64_t highest) {
    const std::string bounds = dashed(flag) + " takes a number from " + std::to_string(lowest) +
                               " to " + std::to_string(highest) + ", not '";
    std::vector<std::string> wrong{"", "x", "-1", "+1", "0x10", "1.5", "99999999999999999999"};
    if (lowest != 0) wrong.push_back(std::to_string(lowest - 1));
    wrong.push_back(std::to_string(highest + 1));
    for (const std::string& value : wrong) {
        const Taken taken = take({dashed(flag), value});
        LAW(!taken.ok && taken.complaint == "httpmark-server: " + bounds + value + "'\n",
            << taken.complaint);
    }
    for (const std::uint64_t value : {lowest, highest}) {
        const Taken taken = take({dashed(flag) + "=" + std::to_string(value)});
        LAW(!mentions(taken.complaint, bounds), << taken.complaint);
    }
}

TEST(Flags, each_name_is_listed_once_and_found) {
    std::set<std::string> names;
    for (const Flag& flag : flags()) {
        LAW(names.insert(flag.name).second, << flag.name);
        LAW(find_flag(flag.name) == &flag, << flag.name);
        LAW(*flag.meaning != '\0', << flag.name);
        LAW(std::all_of(flag.name, flag.name + std::string_view(flag.name).size(),
                        [](char c) {
                            return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                        }),
            << flag.name);
    }
    LAW(find_flag("") == nullptr && find_flag("nonsense") == nullptr);
    LAW(find_flag("tls") == nullptr && find_flag("--port") == nullptr);
}

TEST(Flags, help_lists_each_of_them_with_its_meaning_and_nothing_else) {
    const std::string help = help_text();
    std::istringstream lines(help);
    std::string line;
    std::vector<std::string> listed;
    while (std::getline(lines, line)) {
        if (!line.starts_with("  --")) continue;
        listed.push_back(line.substr(4, std::min(line.find(' ', 4), line.size()) - 4));
    }
    std::vector<std::string> known;
    for (const Flag& flag : flags()) {
        known.emplace_back(flag.name);
        std::istringstream meaning(flag.meaning);
        while (std::getline(meaning, line)) LAW(mentions(help, ' ' + line + '\n'), << flag.name);
    }
    LAW(listed == known, << help);
}

TEST(Flags, help_tells_values_and_defaults) {
    const std::string help = help_text();
    for (const char* part : {
             "  --address A           IPv4",
             "  --engine epoll|uring|uring-direct\n                        event",
             "  --tls-min 1.2|1.3     lowest",
             "  --pin                 keep",
             "  --target-max               8192         414    bytes",
             "  --request-timeout-s                            sets head-timeout-ms",
         }) {
        LAW(mentions(help, part), << part);
    }
    const Limits defaults;
    const std::string limits = limits_text(defaults);
    for (const LimitRow& row : kLimitTable) {
        std::string name(row.flag);
        name.resize(25, ' ');
        LAW(mentions('\n' + limits, '\n' + name + std::to_string(defaults.*row.value) + '\n'));
        name.resize(27, ' ');
        LAW(mentions(help, "  --" + name.substr(0, 25) + std::to_string(defaults.*row.value)),
            << name);
    }
}

TEST(Flags, each_takes_what_its_rule_says) {
    for (const Flag& flag : flags()) {
        if (std::holds_alternative<Switch>(flag.rule)) {
            const Switch& rule = std::get<Switch>(flag.rule);
            Taken taken = take({dashed(flag)});
            LAW(taken.ok && rule.target(taken.options), << flag.name << taken.complaint);
            taken = take({});
            LAW(taken.ok && !rule.target(taken.options), << flag.name);
            LAW(take({dashed(flag) + "=1"}).complaint ==
                    "httpmark-server: " + dashed(flag) + " takes no value\n",
                << flag.name);
            continue;
        }
        LAW(take({dashed(flag)}).complaint ==
                "httpmark-server: " + dashed(flag) + " needs a value\n",
            << flag.name);
        if (const Number* const number = std::get_if<Number>(&flag.rule)) {
            expect_number(flag, number->lowest, number->highest);
        } else if (const LimitNumber* const limit = std::get_if<LimitNumber>(&flag.rule)) {
            expect_number(flag, limit->lowest, limit->highest);
        } else if (const Choice* const choice = std::get_if<Choice>(&flag.rule)) {
            const std::string list =
                dashed(flag) + " is " + words_in_a_row(choice->words) + ", not '";
            LAW(mentions(take({dashed(flag), "nonsense"}).complaint, list + "nonsense'\n"),
                << list);
            for (const Word& word : choice->words) {
                const Taken taken = take({dashed(flag), std::string(word.text)});
                LAW(!mentions(taken.complaint, list), << taken.complaint);
            }
        }
    }
    LAW(words_in_a_row(std::get<Choice>(find_flag("engine")->rule).words) ==
        "epoll, uring or uring-direct");
}

TEST(Flags, values_reach_their_options) {
    const Options options = take({"--address",
                                  "::1",
                                  "--address=127.0.0.1",
                                  "--unix",
                                  "/a",
                                  "--port",
                                  "7",
                                  "--workers",
                                  "3",
                                  "--strictness=rfc",
                                  "--strictness",
                                  "browser",
                                  "--refuse",
                                  "empty-codings",
                                  "--connections-over",
                                  "wait",
                                  "--access-log",
                                  "/log",
                                  "--static",
                                  "/www",
                                  "--server-name=a=b",
                                  "--request-timeout-s",
                                  "5",
                                  "--head-timeout-ms",
                                  "7"})
                                .options;
    const ServerOptions& server = options.server;
    LAW((server.addresses == std::vector<std::string>{"::1", "127.0.0.1"}));
    LAW(server.unix_paths == std::vector<std::string>{"/a"});
    LAW(server.port == 7 && server.workers == 3);
    LAW(server.strictness == Strictness::kBrowser && server.wait_over_connections);
    LAW(server.choices.refuse_empty_codings && !server.choices.refuse_repeated_fields);
    LAW(options.static_directory == "/www" && take({"--static", "/"}).ok);
    LAW(take({"--static="}).complaint == "httpmark-server: --static takes a directory\n");
    LAW(server.access_log == "/log" && server.server_name == "a=b");
    LAW(server.limits.head_timeout_ms == 7 && server.limits.body_timeout_ms == 5000);
}

TEST(Flags, a_route_says_what_its_content_must_be_like) {
    const Options options = take({"--route", "/x,type=A/B,length,body-max=5"}).options;
    LAW(options.content_rules.size() == 1);
    const ContentRule& rule = options.content_rules.front();
    LAW(rule.path == "/x" && rule.media_type == "A/B" && rule.wants_length && rule.body_max == 5);
}

TEST(Flags, values_of_tls_reach_their_options) {
    const TlsSettings tls = take({"--tls-port",          "0",        "--tls-cert",      "c1",
                                  "--tls-cert",          "c2",       "--tls-key",       "k1",
                                  "--tls-key",           "k2",       "--tls-max",       "1.2",
                                  "--tls-client-verify", "required", "--tls-client-ca", "ca",
                                  "--tls-client-depth",  "2",        "--tls-tickets",   "16"})
                                .options.server.tls;
    LAW(tls.pairs.size() == 2 && tls.pairs[0].key == "k1");
    LAW(tls.pairs[1].certificate == "c2" && tls.pairs[1].key == "k2");
    LAW(tls.version_min == 0x0303 && tls.version_max == 0x0303);
    LAW(tls.client_verify == ClientVerify::kRequired && tls.client_ca == "ca" && tls.tickets == 16);
    LAW(tls.client_depth == 2 && TlsSettings().client_depth == 100);
}

TEST(Flags, only_tls_flags_need_a_tls_port) {
    for (const Flag& flag : flags()) {
        const std::string_view name(flag.name);
        LAW(flag.needs_tls_port == (name.starts_with("tls-") && name != "tls-port"), << name);
    }
}

}  // namespace
}  // namespace httpmark
