#include <algorithm>
#include <fstream>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/streams/host/host_device.hpp>

namespace plait::host {

host_device::host_device(std::shared_ptr<compute_pool> pool, std::size_t memory_limit)
    : pool_(std::move(pool))
    , memory_("host device", memory_limit)
{
}

host_device::~host_device()
{
    // Nothing is put on the streams any more. What was put still runs: an operation never sees its memory freed early.
    while (poll()) {
    }
    if (!bell_->unheard() || !std::ranges::all_of(streams_, &host_stream::empty)) // others may wait for it
        abort(std::make_exception_ptr(error(errc::device_lost, "a host device of a group was destroyed")));
    bell_->close();
    reap_all();
}

std::string host_device::description() const
{
    std::ifstream info("/proc/cpuinfo");
    std::string line, model = "processor";
    while (std::getline(info, line))
        if (line.starts_with("model name")) {
            if (auto colon = line.find(": "); colon != std::string::npos) model = line.substr(colon + 2);
            break;
        }
    return model + ", " + std::to_string(pool_->workers()) + (pool_->workers() == 1 ? " thread" : " threads");
}

void host_device::run_next(host_stream& of)
{
    auto const* const record = recorded_in();
    if (record != nullptr) of.note_begin(record->now());
    of.run_next(*pool_);
    if (record != nullptr) of.note_end(record->now());
}

bool host_device::poll()
{
    if (auto why = bell_->failure()) {
        abort(std::move(why));
        return true;
    }
    auto* next = static_cast<host_stream*>(nullptr);
    for (auto& s : streams_) { // in the order of stream_role: the most urgent first
        if (!s.runnable()) continue;
        if (next == nullptr) next = &s;
        // Other devices wait where streams meet: they go before all, so that a collective is under way while operations
        // run.
        if (s.head() != head_kind::operation) {
            next = &s;
            break;
        }
    }
    if (next == nullptr) return false;
    run_next(*next);
    reap();
    return true;
}

} // namespace plait::host
