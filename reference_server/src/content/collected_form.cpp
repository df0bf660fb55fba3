#include "content/collected_form.hpp"

#include <algorithm>

#include "content/form.hpp"
#include "content/multipart.hpp"

namespace httpmark {

Form Form::without_entries(Reason fault, std::uint64_t offset) {
    Form form;
    form.fault_ = fault;
    form.offset_ = offset;
    return form;
}

std::string_view Form::keep(std::string_view text) {
    if (text.empty()) return {};
    texts_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
    std::copy(text.begin(), text.end(), texts_.back().get());
    return {texts_.back().get(), text.size()};
}

Form Form::of_urlencoded(std::string_view text, const FormLimits& limits) {
    Form form;
    FormReader reader(text, limits);
    FormField field;
    char* room = nullptr;  // what is decoded is never longer than the text
    while (reader.next(field)) {
        if (room == nullptr) {
            form.texts_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
            room = form.texts_.back().get();
        }
        FormEntry entry;
        entry.name = decode_form(field.name, room);
        room += entry.name.size();
        entry.value = decode_form(field.value, room);
        room += entry.value.size();
        form.entries_.push_back(entry);
    }
    if (reader.fault() == Reason::kNone) return form;
    return without_entries(reader.fault(), reader.offset());
}

Form Form::of_multipart(std::string_view content_type, std::string_view content,
                        const MultipartLimits& limits) {
    using Status = MultipartDecoder::Status;
    const BoundaryResult result = boundary_of(content_type);
    if (result.fault != Reason::kNone) return without_entries(result.fault, result.offset);
    Form form;
    MultipartDecoder decoder(result.boundary, limits);
    std::string_view rest = content;
    std::string_view piece;
    std::size_t begin = 0;
    std::size_t size = 0;
    while (true) {
        const Status status = decoder.decode(rest, piece);
        if (status == Status::kPartBegin) {
            const MultipartPart& part = decoder.part();
            form.entries_.push_back({form.keep(part.name),
                                     {},
                                     part.has_filename,
                                     form.keep(part.filename),
                                     form.keep(part.content_type)});
            begin = content.size() - rest.size();
            size = 0;
        } else if (status == Status::kContent) {
            size += piece.size();  // pieces follow on each other
        } else if (status == Status::kPartEnd) {
            form.entries_.back().value = content.substr(begin, size);
        } else {
            if (status == Status::kNeedMore && decoder.finish() == Status::kDone) return form;
            return without_entries(decoder.fault(), decoder.offset());
        }
    }
}

const FormEntry* Form::find(std::string_view name) const {
    const auto found = std::ranges::find(entries_, name, &FormEntry::name);
    return found == entries_.end() ? nullptr : &*found;
}

}  // namespace httpmark
