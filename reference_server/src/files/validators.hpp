// The validators of a file, RFC 9110 8.8: its entity tag and its Last-Modified.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "files/file_facts.hpp"
#include "http/date.hpp"

namespace httpmark {

// For how long after its last change a file may be changed again without another time in the
// system: two seconds are the coarsest time of a file system that is in use.
inline constexpr std::int64_t kSettledSeconds = 2;

class Validators {
  public:
    // `now` is what the answer's Date says.
    Validators(const FileFacts& facts, std::int64_t now);

    // In quotes, with W/ before them where it is weak. Made of inode, size and both times, so that
    // it changes with the content even where a program sets the modification time back. Weak while
    // the last change is younger than kSettledSeconds, for then the next one may go unseen.
    std::string_view entity_tag() const { return {text_.data() + begin_, end_ - begin_}; }
    bool is_weak() const { return begin_ == 0; }
    // The same without W/.
    std::string_view opaque_tag() const { return {text_.data() + kWeakSize, end_ - kWeakSize}; }

    // An IMF-fixdate, never later than `now` (8.8.2.1); empty where the year has not four digits.
    std::string_view last_modified() const { return {date_.data(), date_size_}; }
    // The moment that it tells.
    std::int64_t modified() const { return modified_; }
    // The client's copy with this date is this file, byte by byte (8.8.2.2): only if no change can
    // have followed in the same second.
    bool date_is_strong() const { return !is_weak() && date_size_ != 0 && modified_ < now_; }

  private:
    static constexpr std::size_t kWeakSize = 2;
    static constexpr std::size_t kHexMax = 16;
    // Two quotes, two numbers, and two times of a sign, seconds and nanoseconds; five hyphens.
    static constexpr std::size_t kTextMax = kWeakSize + 2 + 6 * (kHexMax + 2);

    std::array<char, kTextMax> text_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::array<char, kImfFixdateSize> date_;
    std::size_t date_size_ = 0;
    std::int64_t modified_;
    std::int64_t now_;
};

}  // namespace httpmark
