#include "websocket/extensions.hpp"

#include <algorithm>

#include "http/syntax.hpp"

namespace httpmark::websocket {

namespace {

void skip_ows(std::string_view& rest) {
    while (!rest.empty() && is_ows(octet(rest.front()))) rest.remove_prefix(1);
}

bool take_char(std::string_view& rest, char wanted) {
    if (rest.empty() || rest.front() != wanted) return false;
    rest.remove_prefix(1);
    return true;
}

// Empty when none is there.
std::string_view take_token(std::string_view& rest) {
    std::size_t size = 0;
    while (size < rest.size() && is_tchar(octet(rest[size]))) ++size;
    const std::string_view token = rest.substr(0, size);
    rest.remove_prefix(size);
    return token;
}

// A quoted-string whose content, after unescaping, is a token (RFC 6455 9.1). False when it is not.
bool take_quoted_token(std::string_view& rest, std::string& token) {
    while (!rest.empty() && rest.front() != '"') {
        if (rest.front() == '\\') rest.remove_prefix(1);
        if (rest.empty() || !is_tchar(octet(rest.front()))) return false;
        token += rest.front();
        rest.remove_prefix(1);
    }
    return take_char(rest, '"') && !token.empty();
}

// 8 to 15 without leading zeros (RFC 7692 7.1.2); else 0.
std::uint8_t window_bits(std::string_view value) {
    constexpr std::string_view kBits[] = {"8", "9", "10", "11", "12", "13", "14", "15"};
    const auto* const found = std::find(std::begin(kBits), std::end(kBits), value);
    return found == std::end(kBits) ? std::uint8_t{0}
                                    : static_cast<std::uint8_t>(8 + (found - std::begin(kBits)));
}

}  // namespace

// What a client offers of permessage-deflate. An offer with an unknown or repeated parameter, or
// one whose value may not be, is declined (RFC 7692 7.1), not a fault.
struct ExtensionOffers::Offer {
    bool is_deflate = false;
    bool is_declined = false;
    bool server_no_context_takeover = false;
    bool client_no_context_takeover = false;
    bool client_window_seen = false;
    std::uint8_t server_window = 0;  // 0: not said
    std::uint8_t client_window = 0;  // 0: not said, or without a value

    void take(std::string_view name, bool has_value, std::string_view value) {
        if (name == "server_no_context_takeover") {
            once(server_no_context_takeover, !has_value);
        } else if (name == "client_no_context_takeover") {
            once(client_no_context_takeover, !has_value);
        } else if (name == "server_max_window_bits") {
            if (server_window != 0) is_declined = true;
            server_window = window_bits(value);
            if (server_window == 0) is_declined = true;
        } else if (name == "client_max_window_bits") {
            client_window = window_bits(value);
            once(client_window_seen, !has_value || client_window != 0);
        } else {
            is_declined = true;
        }
    }

  private:
    void once(bool& seen, bool is_good) {
        if (seen || !is_good) is_declined = true;
        seen = true;
    }
};

// extension = extension-token *( ";" extension-param )
bool ExtensionOffers::take_offer(std::string_view& rest) {
    const std::string_view name = take_token(rest);
    if (name.empty()) return false;
    Offer offer;
    offer.is_deflate = equals_ignoring_case(name, "permessage-deflate");
    skip_ows(rest);
    while (take_char(rest, ';')) {
        skip_ows(rest);
        const std::string_view parameter = take_token(rest);
        if (parameter.empty()) return false;
        skip_ows(rest);
        const bool has_value = take_char(rest, '=');
        std::string value;
        if (has_value) {
            skip_ows(rest);
            if (take_char(rest, '"')) {
                if (!take_quoted_token(rest, value)) return false;
            } else {
                value = take_token(rest);
                if (value.empty()) return false;
            }
            skip_ows(rest);
        }
        std::string lower(parameter);
        std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
        offer.take(lower, has_value, value);
    }
    judge(offer);
    return true;
}

// extension-list = 1#extension, with the empty members that a recipient of a list ignores (RFC 9110
// 5.6.1.2).
bool ExtensionOffers::take(std::string_view value) {
    bool any = false;
    while (true) {
        skip_ows(value);
        if (!value.empty() && value.front() != ',') {
            if (!take_offer(value)) return false;
            any = true;
        }
        if (value.empty()) return any;
        if (!take_char(value, ',')) return false;
    }
}

void ExtensionOffers::judge(const Offer& offer) {
    if (!settings_.enabled || deflate_ || !offer.is_deflate || offer.is_declined) return;
    DeflateParameters agreed = settings_.wanted;
    agreed.server_no_context_takeover |= offer.server_no_context_takeover;
    agreed.client_no_context_takeover |= offer.client_no_context_takeover;
    if (offer.server_window != 0) {
        agreed.server_max_window_bits =
            std::min(agreed.server_max_window_bits, offer.server_window);
    }
    if (!offer.client_window_seen) {
        agreed.client_max_window_bits = 15;  // a client that says nothing cannot be asked (7.1.2.2)
    } else if (offer.client_window != 0) {
        agreed.client_max_window_bits =
            std::min(agreed.client_max_window_bits, offer.client_window);
    }
    deflate_ = agreed;
    server_window_was_offered_ = offer.server_window != 0;
    client_window_was_offered_ = offer.client_window_seen;
}

std::string ExtensionOffers::answer() const {
    if (!deflate_) return {};
    std::string text = "permessage-deflate";
    if (deflate_->server_no_context_takeover) text += "; server_no_context_takeover";
    if (deflate_->client_no_context_takeover) text += "; client_no_context_takeover";
    // An offer with it is accepted by naming it, whatever the value (7.1.2.1).
    if (server_window_was_offered_ || deflate_->server_max_window_bits < 15) {
        text += "; server_max_window_bits=" + std::to_string(deflate_->server_max_window_bits);
    }
    if (client_window_was_offered_ && deflate_->client_max_window_bits < 15) {
        text += "; client_max_window_bits=" + std::to_string(deflate_->client_max_window_bits);
    }
    return text;
}

}  // namespace httpmark::websocket
