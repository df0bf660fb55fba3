// Sec-WebSocket-Extensions, RFC 6455 9.1, and the offers of permessage-deflate in it, RFC 7692 7.1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "websocket/deflate.hpp"

namespace httpmark::websocket {

// The offers of all lines of a request, in order of preference.
class ExtensionOffers {
  public:
    explicit ExtensionOffers(const DeflateSettings& settings) : settings_(settings) {}

    // One field value; false when it breaks the grammar, which fails the handshake.
    bool take(std::string_view value);
    // Of the first offer that can be accepted.
    const std::optional<DeflateParameters>& deflate() const { return deflate_; }
    // The value of the answer's field; empty when there is none.
    std::string answer() const;

  private:
    struct Offer;
    bool take_offer(std::string_view& rest);
    void judge(const Offer& offer);

    DeflateSettings settings_;
    std::optional<DeflateParameters> deflate_;
    bool server_window_was_offered_ = false;
    bool client_window_was_offered_ = false;
};

}  // namespace httpmark::websocket
