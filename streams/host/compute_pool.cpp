#include <new>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/actors/event_loop.hpp>
#include <plait/actors/runtime.hpp>
#include <plait/streams/host/compute_pool.hpp>

namespace plait::host {

namespace {

constexpr std::size_t scratch_bytes = 2u << 20;

// How often a thread looks before it parks, with a pause of 20 to 40 ns between two looks: some tens of microseconds.
// That is longer than the gap between two operations of a step or two steps of a busy engine, and short against the
// time slice of whoever else wants the processor.
constexpr int spins = 1500;

void relax() noexcept
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Returns when `word` no longer holds `seen`.
std::uint32_t await_change(std::atomic<std::uint32_t> const& word, std::uint32_t seen) noexcept
{
    for (int i = 0; i < spins; ++i) {
        auto now = word.load(std::memory_order_acquire);
        if (now != seen) return now;
        relax();
    }
    word.wait(seen, std::memory_order_acquire);
    return word.load(std::memory_order_acquire);
}

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
            auto index = pool_.next_.fetch_add(1, std::memory_order_acquire);
            if (index >= pool_.count_) return;
            pool_.operation_(pool_.arguments_, {index, pool_.count_, {scratch_, scratch_bytes}});
            pool_.done_.fetch_add(1, std::memory_order_release);
            pool_.done_.notify_one();
        }
    }

private:
    void loop() noexcept
    {
        auto gone = pool_.gone_;
        std::uint32_t seen = 0;
        for (;;) {
            seen = await_change(pool_.epoch_, seen);
            if (pool_.closing_.load(std::memory_order_relaxed)) break;
            run_shares();
        }
        gone->fetch_add(1, std::memory_order_release);
        gone->notify_one();
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
    closing_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (;;) {
        auto gone = gone_->load(std::memory_order_acquire);
        if (gone == loops_.size()) return;
        gone_->wait(gone, std::memory_order_acquire);
    }
}

void compute_pool::run(operation op, void const* arguments) noexcept
{
    std::scoped_lock turn(turn_);
    operation_ = op;
    arguments_ = arguments;
    done_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_release);
    if (count_ > 1) {
        epoch_.fetch_add(1, std::memory_order_release);
        epoch_.notify_all();
    }
    members_[0]->run_shares();
    for (auto done = done_.load(std::memory_order_acquire); done != count_;)
        done = await_change(done_, done);
}

} // namespace plait::host
