#pragma once

#include <plait/actors/time/clock.hpp>
#include <plait/streams/operation_info.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// What one device or engine did, and when. It is written to by one thread at a time, without a lock.
class trace_part {
public:
    /// `name` is UTF-8. At most `most` events are kept, the first ones.
    trace_part(std::string name, clock const& time, std::size_t most);
    trace_part(trace_part const&) = delete;
    trace_part& operator=(trace_part const&) = delete;

    time_point now() const noexcept { return clock_.now(); }

    /// What is put on a stream from now on belongs to step `number`; 0: to none.
    void enter_step(std::int64_t number) noexcept { step_ = number; }
    std::int64_t step() const noexcept { return step_; }

    /// An operation that a stream has done: `track` is the stream's, `value` that of its ticket. Those of a track do
    /// not overlap, and come in order.
    struct slice {
        operation_info what;
        time_point begin, end;
        std::uint64_t value = 0;
        std::int64_t step = 0;
    };
    void done(std::uint32_t track, slice const& what) noexcept;

    /// At `value` of the stream of `track` a wait for `of_value` of another one's is over.
    void followed(std::uint32_t track, std::uint64_t value, std::uint32_t of, std::uint64_t of_value) noexcept;

    /// A span of time with a number, now; spans may overlap. `name` is static. One of a name and a number at a time.
    void begin(char const* name, std::int64_t number) noexcept;
    void end(char const* name, std::int64_t number) noexcept;

    /// A track of its own in the picture, from 1 on, with a name that is static.
    void name_track(std::uint32_t track, std::string_view name);

    /// Events that were not kept.
    std::size_t dropped() const noexcept { return dropped_; }

private:
    friend class trace;
    struct operation {
        slice what;
        std::uint32_t track;
    };
    struct dependency {
        std::uint32_t track, of;
        std::uint64_t value, of_value;
    };
    struct mark {
        char const* name;
        std::int64_t number;
        time_point at;
        bool begins;
    };
    struct named_track {
        std::uint32_t track;
        std::string_view name;
    };

    template<class Event>
    void keep(std::vector<Event>& in, Event const& what) noexcept;

    std::string name_;
    clock const& clock_; ///< not used once nothing is recorded any more
    std::size_t most_;
    std::size_t kept_ = 0;
    std::size_t dropped_ = 0;
    std::int64_t step_ = 0;
    std::vector<named_track> tracks_;
    std::vector<operation> operations_;
    std::vector<dependency> dependencies_;
    std::vector<mark> marks_;
};

/// What devices and engines do, as a picture of time: a process for each, a track for each stream, an arrow where a
/// stream waited for another, and the engine's steps and requests above. Given to an engine (engine_options::record) or
/// to a device (device::record_in); written in the end, for a viewer such as Perfetto or chrome://tracing.
class trace {
public:
    /// Each part keeps at most `events_of_a_part`, some 80 bytes each, and counts the rest.
    explicit trace(std::size_t events_of_a_part = 1'000'000);
    ~trace();
    trace(trace const&) = delete;
    trace& operator=(trace const&) = delete;

    /// A part of its own, which lives as long as this; from any thread. `time` outlives what is recorded there. Where
    /// another part has the name, a number is added to it.
    trace_part& add(std::string const& name, clock const& time);

    /// As a JSON object in the Trace Event Format, times in microseconds since the first event. Called when nothing is
    /// recorded: after close() of an engine.
    void write(std::ostream& to) const;

    /// An operation of a device's stream; the names live as long as the trace.
    struct operation {
        std::string_view part;
        std::string_view track;
        trace_part::slice what;
    };
    /// All of them, part by part, in the order in which they ended. Called when nothing is recorded.
    std::vector<operation> operations() const;

    /// Events that were not kept.
    std::size_t dropped() const;

private:
    mutable std::mutex mutex_; ///< of the list; each part belongs to who writes it
    std::deque<trace_part> parts_;
    std::size_t most_;
};

} // namespace plait
