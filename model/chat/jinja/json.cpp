#include <algorithm>
#include <nlohmann/json.hpp>
#include <plait/model/chat/jinja/json.hpp>
#include <plait/model/chat/jinja/merge_sort.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/text.hpp>

namespace plait::jinja {

namespace {

class writer {
public:
    writer(budget& b, json_style const& style)
        : budget_(b)
        , style_(style)
    {
    }

    std::string run(value const& v)
    {
        write(v, 0);
        return std::move(out_);
    }

private:
    budget& budget_;
    json_style const& style_;
    std::string out_;

    void write(value const& v, std::size_t level)
    {
        budget_.step();
        budget_.output(out_.size());
        if (v.is_string()) {
            quote(v.string().bytes);
        } else if (v.is_sequence() && v.items().kind <= sequence_kind::tuple) {
            auto const& items = v.items().items;
            container('[', ']', items.size(), level, [&](std::size_t i) { write(items[i], level + 1); });
        } else if (v.is_mapping()) {
            auto const members = ordered(v.members());
            container('{', '}', members.size(), level, [&](std::size_t i) {
                quote(key_text(members[i]->first));
                out_ += style_.key_separator;
                write(members[i]->second, level + 1);
            });
        } else if (v.is_none() || v.is_number()) {
            out_ += scalar(v);
        } else {
            throw failure(std::string(type_name(v)) + " is not JSON serializable");
        }
    }

    template<class Write>
    void container(char open, char close, std::size_t count, std::size_t level, Write item)
    {
        out_ += open;
        for (std::size_t i = 0; i < count; ++i) {
            if (i) out_ += style_.item_separator;
            new_line(level + 1);
            item(i);
        }
        if (count) new_line(level);
        out_ += close;
    }

    void new_line(std::size_t level)
    {
        if (!style_.pretty) return;
        budget_.output(out_.size() + level * style_.indentation.size());
        out_ += '\n';
        for (std::size_t i = 0; i < level; ++i)
            out_ += style_.indentation;
    }

    static std::string scalar(value const& v)
    {
        if (v.is_none()) return "null";
        if (v.is_boolean()) return v.integer() ? "true" : "false";
        if (v.is_integer()) return std::to_string(v.integer());
        auto text = float_repr(v.real());
        if (text == "nan") return "NaN";
        if (text == "inf") return "Infinity";
        return text == "-inf" ? "-Infinity" : text;
    }

    static std::string key_text(value const& key)
    {
        if (key.is_string()) return key.string().bytes;
        if (key.is_none() || key.is_number()) return scalar(key);
        throw failure("a key of JSON cannot be " + std::string(type_name(key)));
    }

    using member = std::pair<value, value>;

    std::vector<member const*> ordered(mapping const& m)
    {
        std::vector<member const*> members;
        members.reserve(m.items.size());
        for (auto const& item : m.items)
            members.push_back(&item);
        if (style_.sort_keys)
            merge_sort(members, [&](auto const* x, auto const* y) { return less(budget_, x->first, y->first); });
        return members;
    }

    void escape_unit(char32_t unit)
    {
        out_ += "\\u";
        for (int shift = 12; shift >= 0; shift -= 4)
            out_ += "0123456789abcdef"[(unit >> shift) & 15];
    }

    void quote(std::string_view text)
    {
        budget_.output(out_.size() + text.size());
        budget_.search(text.size());
        out_ += '"';
        for (std::size_t at = 0; at < text.size();) {
            auto const c = next_point(text, at);
            switch (c) {
            case '"':
                out_ += "\\\"";
                break;
            case '\\':
                out_ += "\\\\";
                break;
            case '\n':
                out_ += "\\n";
                break;
            case '\r':
                out_ += "\\r";
                break;
            case '\t':
                out_ += "\\t";
                break;
            case '\b':
                out_ += "\\b";
                break;
            case '\f':
                out_ += "\\f";
                break;
            default:
                if (c < 0x20 || (style_.ascii_only && c > 0x7E && c < 0x10000)) {
                    escape_unit(c);
                } else if (style_.ascii_only && c >= 0x10000) {
                    escape_unit(0xD800 + ((c - 0x10000) >> 10));
                    escape_unit(0xDC00 + ((c - 0x10000) & 0x3FF));
                } else {
                    append_point(out_, c);
                }
            }
        }
        out_ += '"';
    }
};

/// Builds values as the parser reads, so that no recursion and no second tree is needed.
class reader : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit reader(budget& b)
        : budget_(b)
    {
    }

    bool null() override { return add(none{}); }
    bool boolean(bool b) override { return add(b); }
    bool number_integer(number_integer_t i) override { return add(static_cast<std::int64_t>(i)); }
    bool number_unsigned(number_unsigned_t u) override
    {
        if (u > static_cast<std::uint64_t>(INT64_MAX)) return add(static_cast<double>(u));
        return add(static_cast<std::int64_t>(u));
    }
    bool number_float(number_float_t d, string_t const&) override { return add(static_cast<double>(d)); }
    bool string(string_t& s) override { return add(make_text(budget_, std::move(s))); }
    bool binary(binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(true); }
    bool start_array(std::size_t) override { return open(false); }

    bool key(string_t& s) override
    {
        open_.back().key = make_text(budget_, std::move(s));
        return true;
    }

    bool end_object() override
    {
        auto m = make_mapping(budget_, std::move(open_.back().members));
        open_.pop_back();
        return add(std::move(m));
    }

    bool end_array() override
    {
        auto s = make_sequence(budget_, sequence_kind::list, std::move(open_.back().items));
        open_.pop_back();
        return add(std::move(s));
    }

    bool parse_error(std::size_t position, std::string const&, nlohmann::detail::exception const&) override
    {
        throw failure("not JSON at byte " + std::to_string(position));
    }

    value take() { return std::move(result_); }

private:
    struct level {
        bool object;
        value key;
        std::vector<value> items;
        mapping members;
    };

    budget& budget_;
    std::vector<level> open_;
    value result_;

    bool open(bool object)
    {
        budget_.depth(static_cast<unsigned>(open_.size() + 1));
        open_.push_back({object, {}, {}, {}});
        return true;
    }

    bool add(value v)
    {
        budget_.step();
        if (open_.empty())
            result_ = std::move(v);
        else if (open_.back().object)
            open_.back().members.put(budget_, std::move(open_.back().key), std::move(v));
        else
            open_.back().items.push_back(std::move(v));
        return true;
    }
};

} // namespace

std::string dump_json(budget& b, value const& v, json_style const& style)
{
    return writer(b, style).run(v);
}

value parse_json(budget& b, std::string_view json)
{
    reader r(b);
    nlohmann::json::sax_parse(json, &r);
    return r.take();
}

} // namespace plait::jinja
