#include <doctest/doctest.h>

#include <set>

#include <plait/actors/error.hpp>
#include <plait/kv/block_pool.hpp>

using namespace plait;

TEST_CASE("a pool hands out each page once and then says that none is left")
{
    block_pool pool(5);
    std::set<page_id> taken;
    for (int i = 0; i < 5; ++i)
        taken.insert(pool.take());
    CHECK(taken.size() == 5);
    CHECK(pool.free_pages() == 0);
    CHECK_THROWS_AS(pool.take(), error);
    for (auto page : taken)
        pool.release(page);
    CHECK(pool.free_pages() == 5);
}

TEST_CASE("a shared page is free only when its last reader has left")
{
    block_pool pool(1);
    auto page = pool.take();
    pool.share(page);
    CHECK(pool.references(page) == 2);
    pool.release(page);
    CHECK(pool.free_pages() == 0);
    pool.release(page);
    CHECK(pool.free_pages() == 1);
    CHECK(pool.references(page) == 0);
}

TEST_CASE("the page that has been free for longest is taken first")
{
    block_pool pool(3);
    auto a = pool.take(), b = pool.take(), c = pool.take();
    pool.release(b);
    pool.release(a);
    pool.release(c);
    CHECK(pool.take() == b);
    CHECK(pool.take() == a);
    CHECK(pool.take() == c);
}

TEST_CASE("an empty pool is a pool, a negative one is an error")
{
    block_pool pool(0);
    CHECK_THROWS_AS(pool.take(), error);
    CHECK_THROWS_AS(block_pool(-1), error);
}
