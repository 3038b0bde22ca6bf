#pragma once

#include <cstddef>
#include <memory_resource>

namespace plait::test {

/// Memory from the heap that counts its pieces.
struct counting_memory : std::pmr::memory_resource {
    long taken = 0;   ///< ever
    long balance = 0; ///< and not given back

private:
    void* do_allocate(std::size_t size, std::size_t align) override
    {
        ++taken;
        ++balance;
        return std::pmr::new_delete_resource()->allocate(size, align);
    }
    void do_deallocate(void* p, std::size_t size, std::size_t align) override
    {
        --balance;
        std::pmr::new_delete_resource()->deallocate(p, size, align);
    }
    bool do_is_equal(memory_resource const& other) const noexcept override { return this == &other; }
};

} // namespace plait::test
