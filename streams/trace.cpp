#include <plait/streams/trace.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <ostream>
#include <string_view>
#include <utility>

namespace plait {

trace_part::trace_part(std::string name, clock const& time, std::size_t most)
    : name_(std::move(name))
    , clock_(time)
    , most_(most)
{
}

template<class Event>
void trace_part::keep(std::vector<Event>& in, Event const& what) noexcept
{
    if (kept_ < most_) {
        try {
            in.push_back(what);
            ++kept_;
            return;
        } catch (std::bad_alloc const&) {
            most_ = kept_; // a picture is not worth more memory than there is
        }
    }
    ++dropped_;
}

void trace_part::done(std::uint32_t track, slice const& what) noexcept
{
    keep(operations_, {what, track});
}

void trace_part::followed(std::uint32_t track, std::uint64_t value, std::uint32_t of, std::uint64_t of_value) noexcept
{
    keep(dependencies_, {track, of, value, of_value});
}

void trace_part::begin(char const* name, std::int64_t number) noexcept
{
    keep(marks_, {name, number, now(), true});
}

void trace_part::end(char const* name, std::int64_t number) noexcept
{
    keep(marks_, {name, number, now(), false});
}

void trace_part::name_track(std::uint32_t track, std::string_view name)
{
    tracks_.push_back({track, name});
}

trace::trace(std::size_t events_of_a_part)
    : most_(events_of_a_part)
{
}

trace::~trace() = default;

trace_part& trace::add(std::string const& name, clock const& time)
{
    std::lock_guard lock(mutex_);
    auto const taken = [&](std::string const& wanted) {
        return std::ranges::any_of(parts_, [&](trace_part const& other) { return other.name_ == wanted; });
    };
    auto distinct = name;
    for (int i = 2; taken(distinct); ++i)
        distinct = name + " (" + std::to_string(i) + ")";
    return parts_.emplace_back(std::move(distinct), time, most_);
}

std::vector<trace::operation> trace::operations() const
{
    std::lock_guard lock(mutex_);
    std::vector<operation> out;
    for (auto const& part : parts_)
        for (auto const& [what, track] : part.operations_) {
            auto const named = std::ranges::find(part.tracks_, track, &trace_part::named_track::track);
            out.push_back({part.name_, named == part.tracks_.end() ? std::string_view() : named->name, what});
        }
    return out;
}

std::size_t trace::dropped() const
{
    std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (auto const& part : parts_)
        sum += part.dropped();
    return sum;
}

namespace {

/// Of what belongs to no track. Viewers take track 0 for the idle process.
constexpr std::uint32_t main_track = 1;

/// A text as JSON has it.
struct quoted {
    std::string_view text;

    friend std::ostream& operator<<(std::ostream& to, quoted const& q)
    {
        to << '"';
        for (char const c : q.text) {
            if (c == '"' || c == '\\') {
                to << '\\' << c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                std::array<char, 8> code{};
                std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(c));
                to << code.data();
            } else {
                to << c;
            }
        }
        return to << '"';
    }
};

/// A time as the format has it: microseconds, and the nanoseconds behind the point.
struct micros {
    duration time;

    friend std::ostream& operator<<(std::ostream& to, micros const& m)
    {
        std::array<char, 32> text{};
        auto const ns = static_cast<long long>(m.time.count());
        std::snprintf(text.data(), text.size(), "%lld.%03lld", ns / 1000, ns % 1000);
        return to << text.data();
    }
};

} // namespace

/// Writes events, one a line. (Trace Event Format,
/// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU)
class trace_writer {
public:
    trace_writer(std::ostream& to, time_point zero)
        : to_(to)
        , zero_(zero)
    {
    }

    void metadata(char const* what, int process, std::uint32_t track, std::string_view name)
    {
        head("M", what, process, track);
        to_ << ",\"args\":{\"name\":" << quoted{name} << "}}";
    }

    void order(int process, std::uint32_t track)
    {
        head("M", "thread_sort_index", process, track);
        to_ << ",\"args\":{\"sort_index\":" << track << "}}";
    }

    void operation(int process, std::uint32_t track, trace_part::slice const& s)
    {
        head("X", s.what.name, process, track);
        to_ << ",\"cat\":\"operation\",\"ts\":" << since(s.begin) << ",\"dur\":" << micros{s.end - s.begin}
            << ",\"args\":{\"bytes\":" << s.what.bytes << ",\"flops\":" << s.what.flops;
        if (s.step != 0) to_ << ",\"step\":" << s.step;
        to_ << "}}";
    }

    /// From the last nanosecond of one operation to the first of another: an end of an arrow belongs to the operation
    /// that is under way then.
    void arrow(int process, std::uint32_t from, trace_part::slice const& before, std::uint32_t to,
               trace_part::slice const& after)
    {
        auto const id = ++arrows_;
        head("s", "follows", process, from);
        to_ << ",\"cat\":\"ticket\",\"id\":" << id
            << ",\"ts\":" << since(std::max(before.begin, before.end - duration(1))) << "}";
        head("f", "follows", process, to);
        to_ << ",\"cat\":\"ticket\",\"bp\":\"e\",\"id\":" << id << ",\"ts\":" << since(after.begin) << "}";
    }

    void mark(int process, char const* name, std::int64_t number, time_point at, bool begins)
    {
        head(begins ? "b" : "e", name, process, main_track);
        to_ << ",\"cat\":" << quoted{name} << ",\"id2\":{\"local\":\"" << number << "\"},\"ts\":" << since(at)
            << ",\"args\":{\"number\":" << number << "}}";
    }

private:
    micros since(time_point at) const { return {at - zero_}; }

    void head(char const* phase, std::string_view name, int process, std::uint32_t track)
    {
        to_ << (first_ ? "\n" : ",\n") << "{\"ph\":\"" << phase << "\",\"name\":" << quoted{name}
            << ",\"pid\":" << process << ",\"tid\":" << track;
        first_ = false;
    }

    std::ostream& to_;
    time_point zero_;
    bool first_ = true;
    std::int64_t arrows_ = 0;
};

namespace {

/// The operations of a part on one track, in order.
using track_slices = std::vector<trace_part::slice const*>;

} // namespace

void trace::write(std::ostream& to) const
{
    std::lock_guard lock(mutex_);
    auto zero = time_point::max();
    for (auto const& part : parts_) {
        for (auto const& o : part.operations_)
            zero = std::min(zero, o.what.begin);
        for (auto const& m : part.marks_)
            zero = std::min(zero, m.at);
    }
    std::size_t dropped = 0;
    to << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    trace_writer writer(to, zero);
    int process = 0;
    for (auto const& part : parts_) {
        ++process;
        dropped += part.dropped();
        writer.metadata("process_name", process, main_track, part.name_);
        std::vector<track_slices> tracks;
        for (auto const& [track, name] : part.tracks_) {
            writer.metadata("thread_name", process, track, name);
            writer.order(process, track);
        }
        for (auto const& [what, track] : part.operations_) {
            writer.operation(process, track, what);
            if (tracks.size() <= track) tracks.resize(track + 1);
            tracks[track].push_back(&what);
        }
        for (auto const& d : part.dependencies_) {
            if (std::max(d.track, d.of) >= tracks.size()) continue;
            auto const value_of = [](trace_part::slice const* s) { return s->value; };
            auto const& before = tracks[d.of];
            auto const& after = tracks[d.track];
            auto const from = std::ranges::upper_bound(before, d.of_value, {}, value_of);
            auto const until = std::ranges::upper_bound(after, d.value, {}, value_of);
            // Either end may have been dropped, or nothing came after the wait.
            if (from == before.begin() || until == after.end()) continue;
            writer.arrow(process, d.of, **std::prev(from), d.track, **until);
        }
        for (auto const& m : part.marks_)
            writer.mark(process, m.name, m.number, m.at, m.begins);
    }
    to << "\n],\"otherData\":{\"dropped\":" << dropped << "}}\n";
}

} // namespace plait
