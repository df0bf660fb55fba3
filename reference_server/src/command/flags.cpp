#include "command/flags.hpp"

#include <algorithm>
#include <iterator>

#include "command/complain.hpp"
#include "http/response.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

bool take_certificate(Options& options, std::string_view value) {
    options.server.tls.pairs.push_back({std::string(value), {}});
    return true;
}

bool take_key(Options& options, std::string_view value) {
    const auto open = std::find_if(options.server.tls.pairs.begin(), options.server.tls.pairs.end(),
                                   [](const auto& pair) { return pair.key.empty(); });
    if (open == options.server.tls.pairs.end()) {
        return complain("--tls-key must follow the --tls-cert it belongs to");
    }
    open->key = value;
    return true;
}

bool take_server_name(Options& options, std::string_view value) {
    if (value.empty() || value.size() > DateLine::kServerNameMax ||
        !field_is_safe({"Server", value})) {
        return complain("--server-name takes 1 to %zu visible bytes", DateLine::kServerNameMax);
    }
    options.server.server_name = value;
    return true;
}

bool take_static(Options& options, std::string_view value) {
    if (value.empty()) return complain("--static takes a directory");
    options.static_directory = value;
    return true;
}

bool take_user(Options& options, std::string_view value) {
    std::string why;
    options.user = find_user(value, why);
    return options.user.has_value() || complain("--user: %s", why.c_str());
}

// One word of what a path requires; false where it is none of them.
bool take_content_rule(std::string_view word, ContentRule& rule) {
    std::uint64_t number = 0;
    if (word == "length") {
        rule.wants_length = true;
    } else if (word.starts_with("type=") && word.find('/') != std::string_view::npos) {
        rule.media_type = word.substr(5);
    } else if (word.starts_with("body-max=") && parse_number(word.substr(9), number)) {
        rule.body_max = number;
    } else {
        return false;
    }
    return true;
}

// PATH,OPTION...: more to ask of content than the application's route does.
bool take_route(Options& options, std::string_view value) {
    const std::string shown(value);
    std::string_view rest = value;
    const auto next = [&] {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view word = rest.substr(0, comma);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        return word;
    };
    ContentRule rule{std::string(next())};
    if (!rule.path.starts_with('/') || rest.empty()) {
        return complain("--route takes PATH,OPTION..., not '%s'", shown.c_str());
    }
    while (!rest.empty()) {
        const std::string_view word = next();
        if (take_content_rule(word, rule)) continue;
        return complain("--route %s: '%s' is not body-max=N, length or type=T", shown.c_str(),
                        std::string(word).c_str());
    }
    options.content_rules.push_back(std::move(rule));
    return true;
}

constexpr Word kEngines[] = {
    {"epoll", [](Options& o) { o.server.engine = Engine::kEpoll; }},
    {"uring", [](Options& o) { o.server.engine = Engine::kUring; }},
    {"uring-direct", [](Options& o) { o.server.engine = Engine::kUringDirect; }},
};
constexpr int kTls12 = 0x0303;  // as OpenSSL numbers them
constexpr int kTls13 = 0x0304;
constexpr Word kTlsLowest[] = {
    {"1.2", [](Options& o) { o.server.tls.version_min = kTls12; }},
    {"1.3", [](Options& o) { o.server.tls.version_min = kTls13; }},
};
constexpr Word kTlsHighest[] = {
    {"1.2", [](Options& o) { o.server.tls.version_max = kTls12; }},
    {"1.3", [](Options& o) { o.server.tls.version_max = kTls13; }},
};
constexpr Word kClientVerify[] = {
    {"off", [](Options& o) { o.client_verify = ClientVerify::kOff; }},
    {"optional", [](Options& o) { o.client_verify = ClientVerify::kOptional; }},
    {"required", [](Options& o) { o.client_verify = ClientVerify::kRequired; }},
};
constexpr Word kStrictness[] = {
    {"strict", [](Options& o) { o.server.strictness = Strictness::kStrict; }},
    {"rfc", [](Options& o) { o.server.strictness = Strictness::kRfc; }},
    {"browser", [](Options& o) { o.server.strictness = Strictness::kBrowser; }},
};
constexpr Word kRefusals[] = {
    {"empty-codings", [](Options& o) { o.server.choices.refuse_empty_codings = true; }},
    {"framing-trailers", [](Options& o) { o.server.choices.refuse_framing_trailers = true; }},
    {"repeated-fields", [](Options& o) { o.server.choices.refuse_repeated_fields = true; }},
};
constexpr Word kConnectionsOver[] = {
    {"503", [](Options& o) { o.server.wait_over_connections = false; }},
    {"wait", [](Options& o) { o.server.wait_over_connections = true; }},
};

constexpr std::uint64_t kPortMax = 65535;
constexpr std::uint64_t kTicketsMax = 16;
constexpr std::uint64_t kDepthMax = 100;

// All but those of the limits.
constexpr Flag kFlags[] = {{"address", "A",
                            "IPv4 or IPv6 address to listen on; may be repeated (127.0.0.1)",
                            Texts{[](Options & o) -> auto& {return o.server.addresses;
}  // namespace
}  // namespace httpmark
}
,
    {"port", "P", "port; 0 takes a free one (8080)",
     Number{0, kPortMax, [](Options& o, std::uint64_t n) { o.server.port = static_cast<int>(n); }}},
    {"unix", "PATH", "also listen on a Unix socket; may be repeated",
     Texts{[](Options & o) -> auto& {return o.server.unix_paths;
}
}
}
,
    {"workers", "N", "number of threads, each with its own listener (number of CPUs)",
     Number{1, kWorkersMax,
            [](Options& o, std::uint64_t n) { o.server.workers = static_cast<unsigned>(n); }}},
    {"pin", "", "keep worker N on CPU N", Switch{[](Options & o) -> auto& {return o.server.pin;
}
}
}
, {"steer", "", "give worker N the connections that arrive on CPU N",
   Switch{[](Options & o) -> auto& {return o.server.steer;
}
}
}
,
    {"engine", "",
     "event engine (epoll); with uring-direct, connections use no file\n"
     "descriptors of the process",
     Choice{kEngines}},
    {"tls-port", "P", "port for TLS; 0 takes a free one",
     Number{0, kPortMax,
            [](Options& o, std::uint64_t n) { o.server.tls_port = static_cast<int>(n); }}},
    {"tls-cert", "F",
     "certificate chain (PEM), followed by its --tls-key; may be repeated:\n"
     "the host name that the client asks for (SNI) selects one",
     Grammar{take_certificate}, true},
    {"tls-key", "F", "private key of the certificate (PEM)", Grammar{take_key}, true},
    {"tls-key-password-file", "F", "file that holds the password of the private keys",
     Text{[](Options & o) -> auto& {return o.server.tls.key_password_file;
}
}
, true
}
, {"tls-min", "", "lowest version of TLS (1.2)", Choice{kTlsLowest}, true},
    {"tls-max", "", "highest version of TLS (1.3)", Choice{kTlsHighest}, true},
    {"tls-ciphers", "LIST", "ciphers of TLS 1.2",
     Text{[](Options & o) -> auto& {return o.server.tls.ciphers;
}
}
, true
}
, {"tls-ciphersuites", "LIST", "cipher suites of TLS 1.3",
   Text{[](Options & o) -> auto& {return o.server.tls.ciphersuites;
}
}
, true
}
, {"tls-groups", "LIST", "groups of the key exchange (X25519:P-256:P-384:P-521)",
   Text{[](Options & o) -> auto& {return o.server.tls.groups;
}
}
, true
}
, {"tls-client-ca", "F", "authority that signs client certificates (PEM)",
   Text{[](Options & o) -> auto& {return o.server.tls.client_ca;
}
}
, true
}
,
    {"tls-client-verify", "", "whether clients must show a certificate (off)",
     Choice{kClientVerify}, true},
    {"tls-client-depth", "N", "certificates between a client's and its authority's, at most (100)",
     Number{0, kDepthMax,
            [](Options& o, std::uint64_t n) {
                o.server.tls.client_depth = static_cast<unsigned>(n);
                o.client_depth = true;
            }},
     true},
    {"tls-tickets", "N", "session tickets of TLS 1.3 for each connection (0)",
     Number{0, kTicketsMax,
            [](Options& o, std::uint64_t n) { o.server.tls.tickets = static_cast<unsigned>(n); }},
     true},
    {"strictness", "LEVEL",
     "strict: the strictest legal reading (default)\n"
     "rfc: also accepts empty lines before a request, an empty Host, and\n"
     "Content-Length repeated with equal values\n"
     "browser: as rfc, and accepts [ ] \\ ^ ` { | } as they are in a query",
     Choice{kStrictness}},
    {"refuse", "WHAT",
     "answer 400 to what is otherwise accepted; may be repeated:\n"
     "empty-codings: empty members of Transfer-Encoding\n"
     "framing-trailers: trailers that frame or route (otherwise dropped)\n"
     "repeated-fields: a field sent twice that a message may hold only once",
     Choice{kRefusals}},
    {"trace", "", "answer TRACE with the request itself (otherwise 501)",
     Switch{[](Options & o) -> auto& {return o.server.choices.answer_trace;
}
}
}
, {"idle-408", "", "answer 408 before an idle connection is closed",
   Switch{[](Options & o) -> auto& {return o.server.choices.answer_idle;
}
}
}
,
    {"connections-over", "",
     "for connections above connections-max: answer 503 (default), or let\n"
     "them wait until another one is closed",
     Choice{kConnectionsOver}},
    {"route", "PATH,OPTION...",
     "what a path requires of content; may be repeated. Options: body-max=N\n"
     "(otherwise 413), length (411 without Content-Length), type=T\n"
     "(otherwise 415)",
     Grammar{take_route}},
    {"server-name", "NAME", "send a Server field with this name", Grammar{take_server_name}},
    {"access-log", "FILE", "append a line for each answer; SIGHUP opens the file again",
     Text{[](Options & o) -> auto& {return o.server.access_log;
}
}
}
, {"static", "DIR", "serve the files below this directory at /static/", Grammar{take_static}},
    {"user", "NAME",
     "once it listens and has read certificates, be that user of\n"
     "/etc/passwd, or UID or UID:GID, in no other group (as root)",
     Grammar{take_user}},
    {"sandbox", "",
     "once it listens, open files only in the folders of those that\n"
     "the flags name, make no connection and start no program\n"
     "(Landlock and seccomp)",
     Switch{[](Options & o) -> auto& {return o.sandbox;
}
}
}
, {"metrics", "", "serve counters at /metrics, for Prometheus",
   Switch{[](Options & o) -> auto& {return o.metrics;
}
}
}
, {"print-limits", "", "print every limit and timeout, then exit",
   Switch{[](Options & o) -> auto& {return o.print_limits;
}
}
}
, {"stats", "", "print counters at the end", Switch{[](Options & o) -> auto& {return o.stats;
}
}
}
, {"help", "", "print this text, then exit", Switch{[](Options & o) -> auto& {return o.help;
}
}
}
, {"version", "", "print the version, then exit", Switch{[](Options & o) -> auto& {return o.version;
}
}
}
,
}
;

// Whole seconds for timeouts that the limits hold in milliseconds.
constexpr Flag kSecondsFlags[] = {
    {"request-timeout-s", "N", "sets head-timeout-ms and body-timeout-ms",
     LimitNumber{
         0, kMilliseconds / 1000, 1000, {&Limits::head_timeout_ms, &Limits::body_timeout_ms}, ""}},
    {"idle-timeout-s", "N", "sets idle-timeout-ms",
     LimitNumber{0, kMilliseconds / 1000, 1000, {&Limits::idle_timeout_ms, nullptr}, ""}},
};

}  // namespace

const std::vector<Flag>& flags() {
    static const std::vector<Flag> all = [] {
        std::vector<Flag> rows(std::begin(kFlags), std::end(kFlags));
        for (const LimitRow& row : kLimitTable) {
            rows.push_back(
                {row.flag, "N", row.meaning,
                 LimitNumber{row.lowest, row.highest, 1, {row.value, nullptr}, row.outcome}});
        }
        rows.insert(rows.end(), std::begin(kSecondsFlags), std::end(kSecondsFlags));
        return rows;
    }();
    return all;
}

const Flag* find_flag(std::string_view name) {
    const std::vector<Flag>& all = flags();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Flag& flag) { return flag.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::string words_in_a_row(std::span<const Word> words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i != 0) text += i + 1 == words.size() ? " or " : ", ";
        text += words[i].text;
    }
    return text;
}

bool parse_number(std::string_view text, std::uint64_t& number) {
    if (text.empty() || text.size() > 19) return false;
    number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
        number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return true;
}

}  // namespace httpmark
