#include <algorithm>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/jinja/text_builder.hpp>

namespace plait::jinja {

void text_builder::mark(byte_range r)
{
    if (r.begin == r.end) return;
    if (!foreign_.empty() && foreign_.back().end == r.begin)
        foreign_.back().end = r.end;
    else
        foreign_.push_back(r);
}

void text_builder::append(std::string_view bytes, bool foreign)
{
    if (foreign) mark({bytes_.size(), bytes_.size() + bytes.size()});
    bytes_ += bytes;
}

void text_builder::append(text const& t)
{
    append(t, t.bytes);
}

void text_builder::append(text const& whole, std::string_view part)
{
    auto const from = part.empty() ? 0 : static_cast<std::size_t>(part.data() - whole.bytes.data());
    auto const to = from + part.size();
    auto first = std::partition_point(whole.foreign.begin(), whole.foreign.end(),
                                      [&](byte_range const& r) { return r.end <= from; });
    for (; first != whole.foreign.end() && first->begin < to; ++first) {
        auto const begin = std::max(first->begin, from) - from;
        auto const end = std::min(first->end, to) - from;
        mark({bytes_.size() + begin, bytes_.size() + end});
    }
    bytes_ += part;
}

value text_builder::finish(budget& b)
{
    b.output(bytes_.size());
    b.allocate(bytes_.size() + foreign_.size() * sizeof(byte_range) + object_bytes);
    b.step(foreign_.size() / 16);
    auto const length = code_points(bytes_);
    return std::make_shared<text const>(text{std::move(bytes_), length, std::move(foreign_)});
}

value make_part(budget& b, text const& whole, std::string_view part)
{
    text_builder out;
    out.append(whole, part);
    return out.finish(b);
}

value foreign_text(budget& b, std::string const& bytes)
{
    derivation const how(b, true);
    return make_text(b, bytes);
}

void append_str(budget& b, text_builder& out, value const& v)
{
    if (v.is_undefined()) return;
    if (v.is_string()) {
        b.output(out.size() + v.string().bytes.size());
        b.step(v.string().foreign.size() / 16);
        out.append(v.string());
        return;
    }
    std::string text;
    append_repr(b, text, v);
    b.output(out.size() + text.size());
    out.append(text, holds_foreign(v));
}

} // namespace plait::jinja
