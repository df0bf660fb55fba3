// UTF-8 as RFC 3629 4 defines it, checked in pieces: a text is refused at the first byte with which
// it cannot be valid any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace httpmark::websocket {

class Utf8Validator {
  public:
    // How many bytes of `text` fit what came before. Fewer than all: the byte behind them is the
    // faulty one, and nothing more may be taken before reset().
    std::size_t take(std::string_view text);
    // No character is under way: here a text may end.
    bool at_boundary() const { return left_ == 0; }
    void reset() { *this = Utf8Validator(); }

  private:
    bool step(unsigned char c);
    bool lead(unsigned char c);

    std::uint8_t left_ = 0;  // bytes that the character under way still needs
    // What the next of them may be.
    std::uint8_t lowest_ = 0x80;
    std::uint8_t highest_ = 0xBF;
};

bool is_utf8(std::string_view text);

}  // namespace httpmark::websocket
