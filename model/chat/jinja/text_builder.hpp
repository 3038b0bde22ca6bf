#pragma once

#include <plait/model/chat/jinja/value.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace plait::jinja {

/// A text in the making that keeps apart what is foreign: what came from a conversation and not from the template.
class text_builder {
public:
    /// Appends what is foreign as a whole, or not at all.
    void append(std::string_view bytes, bool foreign);

    /// Appends a text as it is.
    void append(text const& t);

    /// Appends a part of a text; `part` points into `whole.bytes`.
    void append(text const& whole, std::string_view part);

    std::size_t size() const noexcept { return bytes_.size(); }
    void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

    /// The text, charged to the budget as `make_text` does.
    value finish(budget& b);

    /// The same as bytes and foreign ranges.
    std::string take_bytes() noexcept { return std::move(bytes_); }
    std::vector<byte_range> take_foreign() noexcept { return std::move(foreign_); }

private:
    void mark(byte_range r);

    std::string bytes_;
    std::vector<byte_range> foreign_;
};

/// A part of a text as a text of its own; `part` points into `whole.bytes`.
value make_part(budget& b, text const& whole, std::string_view part);

/// The name of an argument as a text: with `**` it may come from a conversation.
value foreign_text(budget& b, std::string const& bytes);

/// Appends Python's str(v).
void append_str(budget& b, text_builder& out, value const& v);

} // namespace plait::jinja
