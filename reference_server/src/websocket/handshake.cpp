#include "websocket/handshake.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <vector>

#include "check.hpp"
#include "http/syntax.hpp"
#include "websocket/extensions.hpp"

namespace httpmark::websocket {

namespace {

constexpr bool kNoOffer = true;
constexpr bool kOffer = false;

constexpr std::array<RefusalRow, static_cast<std::size_t>(Refusal::kCount)> kRefusals = {{
    {Refusal::kNone, "none", 101, "", kOffer},
    {Refusal::kNotHttp11, "not-http-1.1", 426, "RFC 9110 7.8", kNoOffer},
    {Refusal::kUpgradeMissing, "upgrade-missing", 426, "RFC 9110 15.5.22", kNoOffer},
    {Refusal::kUpgradeOther, "upgrade-other", 426, "RFC 9110 7.8", kNoOffer},
    {Refusal::kMethod, "method", 400, "RFC 6455 4.2.1", kOffer},
    {Refusal::kConnection, "connection", 400, "RFC 6455 4.2.1", kOffer},
    {Refusal::kContent, "content", 400, "RFC 9110 7.8", kOffer},
    {Refusal::kVersionMissing, "version-missing", 400, "RFC 6455 4.2.1", kOffer},
    {Refusal::kVersionRepeated, "version-repeated", 400, "RFC 6455 11.3.5", kOffer},
    {Refusal::kVersionOther, "version-other", 426, "RFC 6455 4.4", kOffer},
    {Refusal::kKeyMissing, "key-missing", 400, "RFC 6455 4.2.1", kOffer},
    {Refusal::kKeyRepeated, "key-repeated", 400, "RFC 6455 11.3.1", kOffer},
    {Refusal::kKeySyntax, "key-syntax", 400, "RFC 6455 4.2.1", kOffer},
    {Refusal::kSubprotocolSyntax, "subprotocol-syntax", 400, "RFC 6455 4.3", kOffer},
    {Refusal::kSubprotocolRepeated, "subprotocol-repeated", 400, "RFC 6455 4.1", kOffer},
    {Refusal::kExtensionSyntax, "extension-syntax", 400, "RFC 6455 9.1", kOffer},
    {Refusal::kOriginRepeated, "origin-repeated", 400, "RFC 6454 7.3", kOffer},
}};

constexpr bool rows_are_in_order() {
    for (std::size_t i = 0; i < kRefusals.size(); ++i) {
        if (kRefusals[i].refusal != static_cast<Refusal>(i)) return false;
    }
    return true;
}
static_assert(rows_are_in_order());

constexpr Field kUpgradeFields[] = {{"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}};

// Calls `take` with each member of a list, without the whitespace around it; false when it says so.
template <class Take>
bool for_each_member(std::string_view value, Take take) {
    while (true) {
        const std::size_t comma = std::min(value.find(','), value.size());
        if (!take(trim_ows(value.substr(0, comma)))) return false;
        if (comma == value.size()) return true;
        value.remove_prefix(comma + 1);
    }
}

// The fields that matter, and what is wrong with each by itself.
struct HandshakeFields {
    bool upgrade_seen = false;
    bool offers_websocket = false;
    unsigned versions = 0;
    unsigned keys = 0;
    unsigned origins = 0;
    bool subprotocol_is_invalid = false;
    bool extension_is_invalid = false;
    std::string_view version;
    std::string_view key;
    std::string_view origin;
    std::vector<std::string_view> subprotocols;
    ExtensionOffers extensions;

    HandshakeFields(std::string_view section, const DeflateSettings& deflate)
        : extensions(deflate) {
        FieldReader reader(section);
        std::string_view name;
        std::string_view value;
        while (reader.next(name, value)) take(name, value);
    }

    // As many as a head has room for; comparing each with each would take long.
    bool subprotocol_repeats() const {
        std::vector<std::string_view> sorted = subprotocols;
        std::sort(sorted.begin(), sorted.end());
        return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    }

  private:
    void take(std::string_view name, std::string_view value) {
        if (equals_ignoring_case(name, "upgrade")) {
            upgrade_seen = true;
            for_each_member(value, [this](std::string_view protocol) {
                offers_websocket |= equals_ignoring_case(protocol, "websocket");
                return true;
            });
        } else if (equals_ignoring_case(name, "sec-websocket-version")) {
            ++versions;
            version = value;
        } else if (equals_ignoring_case(name, "sec-websocket-key")) {
            ++keys;
            key = value;
        } else if (equals_ignoring_case(name, "origin")) {
            ++origins;
            origin = value;
        } else if (equals_ignoring_case(name, "sec-websocket-protocol")) {
            take_subprotocols(value);
        } else if (equals_ignoring_case(name, "sec-websocket-extensions")) {
            extension_is_invalid |= !extensions.take(value);
        }
    }
    void take_subprotocols(std::string_view value) {
        const std::size_t before = subprotocols.size();
        subprotocol_is_invalid |= !for_each_member(value, [this](std::string_view name) {
            if (name.empty()) return true;  // RFC 9110 5.6.1.2
            subprotocols.push_back(name);
            return std::all_of(name.begin(), name.end(), [](char c) { return is_tchar(octet(c)); });
        });
        subprotocol_is_invalid |= subprotocols.size() == before;
    }
};

constexpr bool is_base64_char(unsigned char c) {
    return is_alpha(c) || is_digit(c) || c == '+' || c == '/';
}

// Base64 of 16 bytes: 22 characters and "==", where the last character has four bits that are zero
// (RFC 4648 3.5).
bool is_key(std::string_view key) {
    if (key.size() != 24 || !key.ends_with("==")) return false;
    key.remove_suffix(2);
    return std::all_of(key.begin(), key.end(), [](char c) { return is_base64_char(octet(c)); }) &&
           std::string_view("AQgw").find(key.back()) != std::string_view::npos;
}

Refusal judge(const RequestHead& head, const HandshakeFields& fields) {
    if (!head.is_http_1_1()) return Refusal::kNotHttp11;
    if (!fields.upgrade_seen) return Refusal::kUpgradeMissing;
    if (!fields.offers_websocket) return Refusal::kUpgradeOther;
    if (head.method != Method::kGet) return Refusal::kMethod;
    if (!head.has(kConnectionUpgrade)) return Refusal::kConnection;
    // It would belong to the request, and not to the protocol that is switched to.
    if (head.content_length != 0 || head.has(kCodingSeen)) return Refusal::kContent;
    if (fields.versions == 0) return Refusal::kVersionMissing;
    if (fields.versions > 1) return Refusal::kVersionRepeated;
    if (fields.version != "13") return Refusal::kVersionOther;
    if (fields.keys == 0) return Refusal::kKeyMissing;
    if (fields.keys > 1) return Refusal::kKeyRepeated;
    if (!is_key(fields.key)) return Refusal::kKeySyntax;
    if (fields.subprotocol_is_invalid) return Refusal::kSubprotocolSyntax;
    if (fields.subprotocol_repeats()) return Refusal::kSubprotocolRepeated;
    if (fields.extension_is_invalid) return Refusal::kExtensionSyntax;
    if (fields.origins > 1) return Refusal::kOriginRepeated;
    return Refusal::kNone;
}

}  // namespace

const RefusalRow& refusal_row(Refusal refusal) {
    CHECK(refusal < Refusal::kCount);
    return kRefusals[static_cast<std::size_t>(refusal)];
}

std::span<const Field> refusal_fields(Refusal refusal) {
    if (refusal_row(refusal).status != 426) return {};
    return kUpgradeFields;
}

std::array<char, 28> accept_of(std::string_view key) {
    constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    std::array<char, 24 + kGuid.size()> text;
    CHECK(key.size() == 24);
    std::copy(key.begin(), key.end(), text.begin());
    std::copy(kGuid.begin(), kGuid.end(), text.begin() + 24);
    std::array<unsigned char, 20> digest;
    CHECK(EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha1(), nullptr) == 1);
    std::array<unsigned char, 29> coded;  // with a NUL
    CHECK(EVP_EncodeBlock(coded.data(), digest.data(), static_cast<int>(digest.size())) == 28);
    std::array<char, 28> accept;
    std::copy(coded.begin(), coded.end() - 1, accept.begin());
    return accept;
}

Handshake judge_handshake(const RequestHead& head, std::string_view section,
                          const HandshakeSettings& settings) {
    const HandshakeFields fields(section, settings.deflate);
    Handshake handshake;
    handshake.refusal = judge(head, fields);
    if (handshake.refusal != Refusal::kNone) return handshake;
    handshake.accept = accept_of(fields.key);
    handshake.origin = fields.origin;
    const auto spoken =
        std::find_first_of(fields.subprotocols.begin(), fields.subprotocols.end(),
                           settings.subprotocols.begin(), settings.subprotocols.end());
    if (spoken != fields.subprotocols.end()) handshake.subprotocol = *spoken;
    handshake.deflate = fields.extensions.deflate();
    handshake.extensions = fields.extensions.answer();
    return handshake;
}

std::vector<Field> handshake_fields(const Handshake& handshake) {
    CHECK(handshake.refusal == Refusal::kNone);
    std::vector<Field> fields{
        {"Sec-WebSocket-Accept", {handshake.accept.data(), handshake.accept.size()}}};
    if (!handshake.subprotocol.empty()) {
        fields.push_back({"Sec-WebSocket-Protocol", handshake.subprotocol});
    }
    if (!handshake.extensions.empty()) {
        fields.push_back({"Sec-WebSocket-Extensions", handshake.extensions});
    }
    return fields;
}

}  // namespace httpmark::websocket
