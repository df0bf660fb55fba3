// A form as a whole: all its fields, decoded. For one that is read as it comes there are FormReader
// and MultipartDecoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "http/error.hpp"
#include "limits.hpp"

namespace httpmark {

// A field of a form. Views live as long as the Form; the value of a multipart field is a view of
// the content that it was read from.
struct FormEntry {
    std::string_view name;
    std::string_view value;
    bool is_file = false;           // it has a filename, which may be empty
    std::string_view filename;      // as the client says it: no path to be opened
    std::string_view content_type;  // of a part; empty where it has none
};

// With a fault there are no entries: half a form is none.
class Form {
  public:
    // A query, or the content of application/x-www-form-urlencoded.
    static Form of_urlencoded(std::string_view text, const FormLimits& limits = {});
    // The content of multipart/form-data; the type says what its boundary is.
    static Form of_multipart(std::string_view content_type, std::string_view content,
                             const MultipartLimits& limits = {});
    // What could not be read as a form at all.
    static Form without_entries(Reason fault, std::uint64_t offset = 0);

    std::span<const FormEntry> entries() const { return entries_; }
    // The first one of that name; nullptr where there is none.
    const FormEntry* find(std::string_view name) const;
    Reason fault() const { return fault_; }
    // Of the fault in the content, or, where the boundary is at fault, in the value of
    // Content-Type.
    std::uint64_t offset() const { return offset_; }

  private:
    std::string_view keep(std::string_view text);

    std::vector<std::unique_ptr<char[]>> texts_;
    std::vector<FormEntry> entries_;
    Reason fault_ = Reason::kNone;
    std::uint64_t offset_ = 0;
};

}  // namespace httpmark
