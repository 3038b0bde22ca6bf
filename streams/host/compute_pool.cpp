#include <new>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/event_loop.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/streams/host/compute_pool.hpp>

namespace plait::host {

namespace {

constexpr std::size_t scratch_bytes = 2u << 20;

} // namespace

class compute_pool::member : public work {
public:
    explicit member(compute_pool& pool)
        : pool_(pool)
        , scratch_(static_cast<std::byte*>(::operator new(scratch_bytes, std::align_val_t(64))))
    {
        run = [](work& self) noexcept { static_cast<member&>(self).loop(); };
    }
    ~member() { ::operator delete(scratch_, std::align_val_t(64)); }

    /// Runs the shares that nobody has taken.
    void run_shares() noexcept
    {
        for (;;) {
            auto index = pool_.turns_.take();
            if (index >= pool_.count_) return;
            pool_.operation_(pool_.arguments_, {index, pool_.count_, {scratch_, scratch_bytes}});
            pool_.turns_.finish();
        }
    }

private:
    void loop() noexcept
    {
        auto departures = pool_.departures_;
        std::uint32_t seen = 0;
        for (;;) {
            seen = pool_.turns_.wait_for_call(seen);
            if (pool_.turns_.closing()) break;
            run_shares();
        }
        departures->leave();
    }

    compute_pool& pool_;
    std::byte* scratch_;
};

compute_pool::compute_pool(runtime& home, unsigned workers)
    : count_(workers)
{
    if (workers == 0) throw error(errc::invalid_argument, "threads: 0, but at least one is needed");
    for (unsigned i = 0; i < workers; ++i)
        members_.push_back(std::make_unique<member>(*this));
    if (workers > 1 && !home.has_threads())
        throw error(errc::invalid_argument, "threads: " + std::to_string(workers) +
                                                ", but the runtime has none of its own: 1 is all it can do");
    try {
        for (unsigned i = 1; i < workers; ++i)
            loops_.emplace_back(home.new_loop("plait-work-" + std::to_string(i)))->post(*members_[i]);
    } catch (...) {
        end();
        throw;
    }
}

compute_pool::~compute_pool()
{
    end();
}

/// Sends the workers that were started away and waits for them.
void compute_pool::end() noexcept
{
    turns_.close();
    turns_.call();
    departures_->wait_for(static_cast<std::uint32_t>(loops_.size()));
}

void compute_pool::run(operation op, void const* arguments) noexcept
{
    std::scoped_lock turn(turn_);
    operation_ = op;
    arguments_ = arguments;
    turns_.publish();
    if (count_ > 1) turns_.call();
    members_[0]->run_shares();
    turns_.wait_for(count_);
}

} // namespace plait::host
