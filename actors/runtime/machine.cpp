#include <plait/actors/runtime/machine.hpp>

#include <atomic>

namespace plait::detail {

void keep_for_good(void* what) noexcept
{
    struct kept {
        void* what;
        kept* next;
    };
    static std::atomic<kept*> all{nullptr};
    auto* k = new kept{what, all.load(std::memory_order_relaxed)};
    while (!all.compare_exchange_weak(k->next, k, std::memory_order_relaxed)) {
    }
}

machine::~machine() = default;
machine::guest::~guest() = default;

std::exception_ptr machine::guest::why() const noexcept
{
    return nullptr;
}

} // namespace plait::detail
