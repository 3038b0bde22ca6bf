#include <algorithm>
#include <charconv>
#include <cmath>
#include <plait/model/chat/jinja/function.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/jinja/value.hpp>

namespace plait::jinja {

namespace {

constexpr std::size_t linear_search = 8; // below this many members a scan is faster than hashing

template<class T>
T const* alternative(value const& v)
{
    return std::get_if<T>(&v.data());
}

bool equal_sequences(budget& b, sequence const& left, sequence const& right)
{
    if (left.kind != right.kind || left.items.size() != right.items.size()) return false;
    for (std::size_t i = 0; i < left.items.size(); ++i) {
        if (!equal(b, left.items[i], right.items[i])) return false;
    }
    return true;
}

bool equal_mappings(budget& b, mapping const& left, mapping const& right)
{
    if (left.items.size() != right.items.size()) return false;
    for (auto const& [key, item] : left.items) {
        auto const* other = right.find(b, key);
        if (!other || !equal(b, item, *other)) return false;
    }
    return true;
}

bool equal_numbers(value const& a, value const& b)
{
    if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
    if (a.is_integer() != b.is_integer()) {
        // Python compares exactly; a double conversion of a large integer would not.
        auto const i = a.is_integer() ? a.integer() : b.integer();
        auto const d = a.is_integer() ? b.real() : a.real();
        if (!(d >= -0x1p63 && d < 0x1p63) || d != std::floor(d)) return false;
        return static_cast<std::int64_t>(d) == i;
    }
    return a.real() == b.real();
}

void append_items(budget& b, std::string& out, std::vector<value> const& items)
{
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i) out += ", ";
        append_repr(b, out, items[i]);
    }
}

void append_sequence(budget& b, std::string& out, sequence const& s)
{
    switch (s.kind) {
    case sequence_kind::list:
        out += '[';
        append_items(b, out, s.items);
        out += ']';
        return;
    case sequence_kind::tuple:
        out += '(';
        append_items(b, out, s.items);
        out += s.items.size() == 1 ? ",)" : ")";
        return;
    case sequence_kind::range: {
        auto const first = s.items.empty() ? 0 : s.items.front().integer();
        auto const step = s.items.size() < 2 ? 1 : s.items[1].integer() - first;
        auto const last = s.items.empty() ? 0 : s.items.back().integer() + (step > 0 ? 1 : -1);
        out += "range(" + std::to_string(first) + ", " + std::to_string(last);
        if (step != 1) out += ", " + std::to_string(step);
        out += ')';
        return;
    }
    case sequence_kind::keys:
    case sequence_kind::values:
    case sequence_kind::items:
        out += s.kind == sequence_kind::keys     ? "dict_keys(["
               : s.kind == sequence_kind::values ? "dict_values(["
                                                 : "dict_items([";
        append_items(b, out, s.items);
        out += "])";
        return;
    case sequence_kind::iterator:
        throw failure("an iterator cannot be printed; use the filter 'list' first");
    }
}

void append_mapping(budget& b, std::string& out, mapping const& m)
{
    out += '{';
    bool first = true;
    for (auto const& [key, item] : m.items) {
        if (!first) out += ", ";
        first = false;
        append_repr(b, out, key);
        out += ": ";
        append_repr(b, out, item);
    }
    out += '}';
}

} // namespace

name_space* value::as_name_space() const
{
    auto const* p = std::get_if<std::shared_ptr<jinja::name_space>>(&data_);
    return p ? p->get() : nullptr;
}

loop_state* value::as_loop() const
{
    auto const* p = std::get_if<std::shared_ptr<jinja::loop_state>>(&data_);
    return p ? p->get() : nullptr;
}

std::int64_t value::integer() const
{
    if (auto const* b = std::get_if<bool>(&data_)) return *b ? 1 : 0;
    return std::get<std::int64_t>(data_);
}

double value::real() const
{
    if (auto const* d = std::get_if<double>(&data_)) return *d;
    return static_cast<double>(integer());
}

std::size_t mapping::position(std::string_view key) const
{
    if (items.size() > linear_search) {
        auto const found = strings_.find(key);
        return found == strings_.end() ? items.size() : found->second;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].first.is_string() && items[i].first.string().bytes == key) return i;
    }
    return items.size();
}

value const* mapping::find(std::string_view key) const
{
    auto const at = position(key);
    return at == items.size() ? nullptr : &items[at].second;
}

value const* mapping::find(budget& b, value const& key) const
{
    b.step();
    if (key.is_string()) return find(key.string().bytes);
    for (auto const& [candidate, item] : items) {
        if (!candidate.is_string() && equal(b, candidate, key)) return &item;
    }
    return nullptr;
}

void mapping::put(budget& b, value key, value item)
{
    depth = std::max(depth, 1 + std::max(depth_of(key), depth_of(item)));
    foreign |= holds_foreign(key) || holds_foreign(item);
    if (auto const* present = find(b, key)) {
        const_cast<value&>(*present) = std::move(item); // `*this` is not const, so neither is what it holds
        return;
    }
    items.emplace_back(std::move(key), std::move(item));
    if (items.size() == linear_search + 1) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (items[i].first.is_string()) strings_.emplace(items[i].first.string().bytes, i);
        }
    } else if (items.size() > linear_search && items.back().first.is_string()) {
        strings_.emplace(items.back().first.string().bytes, items.size() - 1);
    }
}

value const* name_space::find(std::string_view name) const
{
    for (auto const& [candidate, item] : items) {
        if (candidate == name) return &item;
    }
    return nullptr;
}

void name_space::put(std::string_view name, value item)
{
    for (auto& [candidate, present] : items) {
        if (candidate != name) continue;
        present = std::move(item);
        return;
    }
    items.emplace_back(std::string(name), std::move(item));
}

unsigned depth_of(value const& item)
{
    if (item.is_sequence()) return item.items().depth;
    if (item.is_mapping()) return item.members().depth;
    if (item.is_function()) return 1 + depth_of(item.callee().self);
    return 0;
}

bool holds_foreign(value const& item)
{
    if (item.is_string()) return !item.string().foreign.empty();
    if (item.is_sequence()) return item.items().foreign;
    if (item.is_mapping()) return item.members().foreign;
    if (item.is_function()) return item.callee().macro != nullptr || holds_foreign(item.callee().self);
    if (auto const* loop = item.as_loop()) return loop->items->foreign;
    return item.as_name_space() != nullptr; // its members change
}

value make_text(budget& b, std::string bytes)
{
    b.output(bytes.size());
    b.allocate(bytes.size() + object_bytes);
    auto const length = code_points(bytes);
    std::vector<byte_range> foreign;
    if (b.foreign() && !bytes.empty()) foreign.push_back({0, bytes.size()});
    return std::make_shared<text const>(text{std::move(bytes), length, std::move(foreign)});
}

value make_sequence(budget& b, sequence_kind kind, std::vector<value> items)
{
    unsigned depth = 0;
    bool foreign = false;
    for (auto const& item : items) {
        depth = std::max(depth, depth_of(item));
        foreign |= holds_foreign(item);
    }
    b.depth(depth + 1);
    b.step(items.size() / 16);
    b.allocate(items.size() * sizeof(value) + object_bytes);
    return std::make_shared<sequence const>(sequence{kind, depth + 1, std::move(items), foreign});
}

value make_mapping(budget& b, mapping m)
{
    b.depth(m.depth);
    b.allocate(m.items.size() * 3 * sizeof(value) + object_bytes);
    return std::make_shared<mapping const>(std::move(m));
}

value make_undefined(budget& b, std::string hint)
{
    b.allocate(hint.size() + object_bytes);
    return undefined{std::make_shared<std::string const>(std::move(hint))};
}

std::string_view type_name(value const& v)
{
    struct visitor {
        std::string_view operator()(undefined const&) const { return "Undefined"; }
        std::string_view operator()(none) const { return "NoneType"; }
        std::string_view operator()(bool) const { return "bool"; }
        std::string_view operator()(std::int64_t) const { return "int"; }
        std::string_view operator()(double) const { return "float"; }
        std::string_view operator()(std::shared_ptr<text const> const&) const { return "str"; }
        std::string_view operator()(std::shared_ptr<sequence const> const& s) const
        {
            switch (s->kind) {
            case sequence_kind::list:
                return "list";
            case sequence_kind::tuple:
                return "tuple";
            case sequence_kind::range:
                return "range";
            case sequence_kind::iterator:
                return "generator";
            case sequence_kind::keys:
                return "dict_keys";
            case sequence_kind::values:
                return "dict_values";
            case sequence_kind::items:
                return "dict_items";
            }
            return "list";
        }
        std::string_view operator()(std::shared_ptr<mapping const> const&) const { return "dict"; }
        std::string_view operator()(std::shared_ptr<name_space> const&) const { return "Namespace"; }
        std::string_view operator()(std::shared_ptr<loop_state> const&) const { return "LoopContext"; }
        std::string_view operator()(std::shared_ptr<function const> const&) const { return "function"; }
    };
    return std::visit(visitor{}, v.data());
}

bool truthy(value const& v)
{
    struct visitor {
        bool operator()(undefined const&) const { return false; }
        bool operator()(none) const { return false; }
        bool operator()(bool b) const { return b; }
        bool operator()(std::int64_t i) const { return i != 0; }
        bool operator()(double d) const { return d != 0; }
        bool operator()(std::shared_ptr<text const> const& s) const { return !s->bytes.empty(); }
        bool operator()(std::shared_ptr<sequence const> const& s) const
        {
            return s->kind == sequence_kind::iterator || !s->items.empty();
        }
        bool operator()(std::shared_ptr<mapping const> const& m) const { return !m->items.empty(); }
        bool operator()(std::shared_ptr<name_space> const&) const { return true; }
        bool operator()(std::shared_ptr<loop_state> const& l) const { return !l->items->items.empty(); }
        bool operator()(std::shared_ptr<function const> const&) const { return true; }
    };
    return std::visit(visitor{}, v.data());
}

bool equal(budget& b, value const& left, value const& right)
{
    b.step();
    if (left.is_number() && right.is_number()) return equal_numbers(left, right);
    if (left.data().index() != right.data().index()) return false;
    if (left.is_undefined() || left.is_none()) return true;
    if (left.is_string()) {
        b.scan(left.string().bytes.size());
        return left.string().bytes == right.string().bytes;
    }
    if (left.is_sequence()) return &left.items() == &right.items() || equal_sequences(b, left.items(), right.items());
    if (left.is_mapping())
        return &left.members() == &right.members() || equal_mappings(b, left.members(), right.members());
    return same(left, right);
}

bool same(value const& a, value const& b)
{
    if (a.data().index() != b.data().index()) return false;
    return std::visit(
        [&](auto const& left) {
            using type = std::decay_t<decltype(left)>;
            auto const& right = *alternative<type>(b);
            if constexpr (std::is_same_v<type, undefined>)
                return left.hint == right.hint;
            else if constexpr (std::is_same_v<type, none>)
                return true;
            else if constexpr (std::is_same_v<type, std::shared_ptr<text const>>)
                return left == right || left->bytes == right->bytes; // Python interns most of them
            else
                return left == right;
        },
        a.data());
}

std::string float_repr(double d)
{
    if (std::isnan(d)) return "nan";
    if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
    char buffer[40];
    // Shortest round-trip digits in scientific form, laid out by Python's rule: plain for exponents -4 to 15.
    auto const end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
    std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
    std::string out;
    if (scientific.front() == '-') {
        out += '-';
        scientific.remove_prefix(1);
    }
    auto const e = scientific.find('e');
    std::string digits(1, scientific[0]);
    if (e > 1) digits += scientific.substr(2, e - 2);
    int exponent = 0;
    auto const* const first = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
    std::from_chars(first, scientific.data() + scientific.size(), exponent);

    auto const count = static_cast<int>(digits.size());
    if (exponent < -4 || exponent >= 16) {
        out += digits[0];
        if (count > 1) out += '.' + digits.substr(1);
        out += exponent < 0 ? "e-" : "e+";
        auto const magnitude = std::to_string(std::abs(exponent));
        if (magnitude.size() < 2) out += '0';
        out += magnitude;
    } else if (exponent < 0) {
        out += "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    } else if (exponent + 1 >= count) {
        out += digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
    } else {
        auto const point = static_cast<std::size_t>(exponent) + 1;
        out += digits.substr(0, point) + '.' + digits.substr(point);
    }
    return out;
}

void append_str(budget& b, std::string& out, value const& v)
{
    if (v.is_undefined()) return;
    if (v.is_string()) {
        b.output(out.size() + v.string().bytes.size());
        out += v.string().bytes;
        return;
    }
    append_repr(b, out, v);
}

void append_repr(budget& b, std::string& out, value const& v)
{
    struct visitor {
        budget& b;
        std::string& out;

        void operator()(undefined const&) const { out += "Undefined"; }
        void operator()(none) const { out += "None"; }
        void operator()(bool x) const { out += x ? "True" : "False"; }
        void operator()(std::int64_t i) const { out += std::to_string(i); }
        void operator()(double d) const { out += float_repr(d); }
        void operator()(std::shared_ptr<text const> const& s) const
        {
            b.output(out.size() + s->bytes.size());
            b.classify(s->bytes.size());
            append_quoted(out, s->bytes);
        }
        void operator()(std::shared_ptr<sequence const> const& s) const { append_sequence(b, out, *s); }
        void operator()(std::shared_ptr<mapping const> const& m) const { append_mapping(b, out, *m); }
        void operator()(std::shared_ptr<name_space> const&) const
        {
            // Python prints the members, which may hold the namespace itself; nothing published prints one.
            throw failure("a namespace cannot be printed");
        }
        void operator()(std::shared_ptr<loop_state> const& l) const
        {
            out += "<LoopContext " + std::to_string(l->index + 1) + "/" + std::to_string(l->items->items.size()) + ">";
        }
        void operator()(std::shared_ptr<function const> const& f) const
        {
            if (!f->macro) throw failure("a function cannot be printed; was a call forgotten?");
            out += f->name.empty() ? "<Macro anonymous>" : "<Macro '" + f->name + "'>";
        }
    };
    b.step();
    std::visit(visitor{b, out}, v.data());
    b.output(out.size());
}

std::string to_str(budget& b, value const& v)
{
    std::string out;
    append_str(b, out, v);
    return out;
}

void fail_undefined(value const& v)
{
    auto const* u = alternative<undefined>(v);
    throw failure(u && u->hint ? *u->hint : std::string("an undefined value is used"));
}

} // namespace plait::jinja
