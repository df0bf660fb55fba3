#include "http/syntax.hpp"
#include "scan/head.hpp"
#include "scan/scan.hpp"

namespace httpmark {

namespace {

class Block {
  public:
    Block() = default;
    explicit Block(const char* data) : Block(data, kBlockSize) {}
    Block(const char* data, unsigned size) : data_(data), size_(size) {
        // Half of the masks are wanted of any block, so these are made in one go.
        for (unsigned i = 0; i < size; ++i) {
            const unsigned char c = octet(data[i]);
            const std::uint64_t classes = kClassTable[c];
            token_ |= (classes & kClassToken) << i;
            forbidden_ |= ((classes & kClassForbidden) / kClassForbidden) << i;
            colon_ |= std::uint64_t{c == ':'} << i;
            cr_ |= std::uint64_t{c == '\r'} << i;
            lf_ |= std::uint64_t{c == '\n'} << i;
        }
        for (unsigned i = size; i < kBlockSize; ++i) forbidden_ |= kOne << i;  // as NUL is
    }
    std::uint64_t token() const { return token_; }
    std::uint64_t plain_target() const { return member(kClassTarget); }
    std::uint64_t hex() const { return member(kClassHex); }
    std::uint64_t host() const { return member(kClassHostName); }
    std::uint64_t forbidden() const { return forbidden_; }
    std::uint64_t colon() const { return colon_; }
    std::uint64_t cr() const { return cr_; }
    std::uint64_t lf() const { return lf_; }
    std::uint64_t percent() const {
        std::uint64_t mask = 0;
        for (unsigned i = 0; i < size_; ++i) mask |= std::uint64_t{data_[i] == '%'} << i;
        return mask;
    }

  private:
    std::uint64_t member(std::uint8_t char_class) const {
        std::uint64_t mask = 0;
        for (unsigned i = 0; i < size_; ++i) {
            mask |= std::uint64_t{(kClassTable[octet(data_[i])] & char_class) != 0} << i;
        }
        return mask;
    }

    const char* data_ = nullptr;
    unsigned size_ = 0;
    std::uint64_t token_ = 0;
    std::uint64_t forbidden_ = 0;
    std::uint64_t colon_ = 0;
    std::uint64_t cr_ = 0;
    std::uint64_t lf_ = 0;
};

bool supported() {
    return true;
}

}  // namespace

const ScanKernel kScalarKernel = {"scalar", HeadParser::parse_with<Block>, classify_with<Block>,
                                  classify_part_with<Block>, supported};

}  // namespace httpmark
