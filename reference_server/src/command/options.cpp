#include "command/options.hpp"

#include <string_view>
#include <variant>

#include "command/complain.hpp"
#include "command/flags.hpp"

namespace httpmark {

namespace {

// Puts the value of a flag where it belongs; false with the complaint made.
struct Taker {
    const Flag& flag;
    std::string_view value;
    Options& options;

    bool operator()(const Switch& rule) const { return rule.target(options) = true; }
    bool operator()(const Number& rule) const {
        std::uint64_t number = 0;
        if (!read(rule.lowest, rule.highest, number)) return false;
        rule.put(options, number);
        return true;
    }
    bool operator()(const LimitNumber& rule) const {
        std::uint64_t number = 0;
        if (!read(rule.lowest, rule.highest, number)) return false;
        for (std::uint64_t Limits::*const target : rule.targets) {
            if (target != nullptr) options.server.limits.*target = number * rule.unit;
        }
        return true;
    }
    bool operator()(const Text& rule) const {
        rule.target(options) = value;
        return true;
    }
    bool operator()(const Texts& rule) const {
        rule.target(options).emplace_back(value);
        return true;
    }
    bool operator()(const Choice& rule) const {
        for (const Word& word : rule.words) {
            if (word.text != value) continue;
            word.put(options);
            return true;
        }
        return complain("--%s is %s, not '%s'", flag.name, words_in_a_row(rule.words).c_str(),
                        std::string(value).c_str());
    }
    bool operator()(const Grammar& rule) const { return rule.take(options, value); }

  private:
    bool read(std::uint64_t lowest, std::uint64_t highest, std::uint64_t& number) const {
        if (parse_number(value, number) && number >= lowest && number <= highest) return true;
        return complain("--%s takes a number from %llu to %llu, not '%s'", flag.name,
                        static_cast<unsigned long long>(lowest),
                        static_cast<unsigned long long>(highest), std::string(value).c_str());
    }
};

bool take_words(int argc, const char* const* argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        std::string_view argument(argv[i]);
        if (!argument.starts_with("--")) return complain("unknown argument '%s'", argv[i]);
        argument.remove_prefix(2);
        const std::size_t equals = argument.find('=');
        const std::string name(argument.substr(0, equals));
        const Flag* const flag = find_flag(name);
        if (flag == nullptr) return complain("unknown flag '--%s' (see --help)", name.c_str());
        const bool takes_value = !std::holds_alternative<Switch>(flag->rule);
        std::string_view value;
        if (equals != std::string_view::npos) {
            if (!takes_value) return complain("--%s takes no value", flag->name);
            value = argument.substr(equals + 1);
        } else if (takes_value) {
            if (++i == argc) return complain("--%s needs a value", flag->name);
            value = argv[i];
        }
        if (flag->needs_tls_port && options.tls_flag.empty()) options.tls_flag = name;
        if (!std::visit(Taker{*flag, value, options}, flag->rule)) return false;
    }
    return true;
}

bool check_tls(const Options& options) {
    const TlsSettings& tls = options.server.tls;
    for (const TlsSettings::Pair& pair : tls.pairs) {
        if (pair.key.empty()) {
            return complain("--tls-cert %s has no --tls-key", pair.certificate.c_str());
        }
    }
    if (options.server.tls_port >= 0 && tls.pairs.empty()) {
        return complain("--tls-port needs --tls-cert and --tls-key");
    }
    if (tls.client_verify != ClientVerify::kOff && tls.client_ca.empty()) {
        return complain("--tls-client-verify needs --tls-client-ca");
    }
    if (!tls.client_ca.empty() && !options.client_verify.has_value()) {
        return complain("--tls-client-ca does nothing without --tls-client-verify");
    }
    if (options.client_depth && !options.client_verify.has_value()) {
        return complain("--tls-client-depth does nothing without --tls-client-verify");
    }
    if (tls.version_min > tls.version_max) {
        return complain("--tls-min must not be above --tls-max");
    }
    if (options.server.tls_port < 0 && !options.tls_flag.empty()) {
        return complain("--%s does nothing without --tls-port", options.tls_flag.c_str());
    }
    return true;
}

}  // namespace

bool parse_options(int argc, const char* const* argv, Options& options) {
    options.server.addresses.clear();
    if (!take_words(argc, argv, options)) return false;
    if (options.server.addresses.empty()) options.server.addresses.emplace_back("127.0.0.1");
    if (!engine_is_built(options.server.engine)) return complain("this build has no io_uring");
    options.server.tls.client_verify = options.client_verify.value_or(ClientVerify::kOff);
    if (!check_tls(options)) return false;
    if (options.server.limits.head_max < options.server.limits.target_max) {
        return complain("--head-max must not be less than --target-max");
    }
    return true;
}

}  // namespace httpmark
