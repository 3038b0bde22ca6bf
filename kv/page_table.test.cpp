#include <doctest/doctest.h>

#include <random>

#include <plait/actors/error.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/kv/page_table.hpp>

using namespace plait;

TEST_CASE("a table takes a page for every sixteen tokens and gives all of them back")
{
    block_pool pool(8);
    {
        page_table table(pool, 0);
        std::vector<page_copy> copies;
        table.grow(1, copies);
        CHECK(table.pages().size() == 1);
        table.grow(16, copies);
        CHECK(table.pages().size() == 1);
        CHECK(table.pages_to_grow(17) == 1);
        table.grow(17, copies);
        table.grow(100, copies);
        CHECK(table.pages().size() == 7);
        CHECK(copies.empty());
        CHECK(pool.free_pages() == 1);
    }
    CHECK(pool.free_pages() == 8);
}

TEST_CASE("a table that can't grow stays as it was")
{
    block_pool pool(2);
    page_table table(pool, 0);
    std::vector<page_copy> copies;
    table.grow(20, copies);
    CHECK_THROWS_AS(table.grow(33, copies), error);
    CHECK(table.tokens() == 20);
    CHECK(table.pages().size() == 2);
}

TEST_CASE("forks share full pages and copy the last one before they write to it")
{
    block_pool pool(10);
    page_table first(pool, 0);
    std::vector<page_copy> copies;
    first.grow(20, copies);
    auto second = first.fork();
    auto third = first.fork();
    CHECK(pool.free_pages() == 8);

    CHECK(second.pages_to_grow(21) == 1);
    second.grow(21, copies);
    REQUIRE(copies.size() == 1);
    CHECK(copies[0].from == first.pages()[1]);
    CHECK(copies[0].to == second.pages()[1]);
    CHECK(second.pages()[0] == first.pages()[0]);

    third.grow(21, copies);
    CHECK(copies.size() == 2);
    // The last one that holds the page owns it now.
    CHECK(first.pages_to_grow(21) == 0);
    first.grow(21, copies);
    CHECK(copies.size() == 2);
}

TEST_CASE("forks of a full last page copy nothing")
{
    block_pool pool(4);
    page_table first(pool, 0);
    std::vector<page_copy> copies;
    first.grow(32, copies);
    auto second = first.fork();
    second.grow(33, copies);
    CHECK(copies.empty());
    CHECK(pool.free_pages() == 1);
}

TEST_CASE("pages that leave the window go back, and only those that no later token reads")
{
    block_pool pool(10);
    page_table table(pool, 20);
    std::vector<page_copy> copies;
    table.grow(32, copies);
    CHECK(pool.free_pages() == 8);
    // Token 32 reads back to position 13: both pages are needed.
    table.grow(33, copies);
    CHECK(table.pages()[0] >= 0);
    // Token 36 reads back to position 17: the first page is not.
    table.grow(36, copies);
    CHECK(table.pages()[0] >= 0);
    table.grow(37, copies);
    CHECK(table.pages()[0] == -1);
    CHECK(table.pages()[1] >= 0);
    CHECK(pool.free_pages() == 8);
    table.clear();
    CHECK(pool.free_pages() == 10);
}

TEST_CASE("whatever sequences do, every page has as many references as tables hold it")
{
    std::mt19937 random(7);
    for (int round = 0; round < 50; ++round) {
        block_pool pool(64);
        std::vector<page_table> tables;
        for (int step = 0; step < 200; ++step) {
            auto pick = tables.empty() ? 0 : random() % tables.size();
            switch (random() % 4) {
            case 0:
                tables.emplace_back(pool, random() % 2 == 0 ? 0 : 24);
                break;
            case 1:
                if (!tables.empty()) {
                    auto fork = tables[pick].fork();
                    tables.push_back(std::move(fork));
                }
                break;
            case 2:
                if (!tables.empty()) tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(pick));
                break;
            case 3:
                if (!tables.empty()) {
                    std::vector<page_copy> copies;
                    auto tokens = tables[pick].tokens() + static_cast<std::int64_t>(random() % 20);
                    if (tables[pick].pages_to_grow(tokens) <= pool.free_pages()) {
                        auto before = pool.free_pages();
                        auto need = tables[pick].pages_to_grow(tokens);
                        tables[pick].grow(tokens, copies);
                        CHECK(pool.free_pages() >= before - need);
                    } else {
                        CHECK_THROWS_AS(tables[pick].grow(tokens, copies), error);
                    }
                }
                break;
            }
            std::vector<int> held(64, 0);
            for (auto const& table : tables)
                for (auto page : table.pages())
                    if (page >= 0) ++held[static_cast<std::size_t>(page)];
            std::int64_t free = 0;
            for (page_id page = 0; page < 64; ++page) {
                REQUIRE(pool.references(page) == held[static_cast<std::size_t>(page)]);
                if (pool.references(page) == 0) ++free;
            }
            REQUIRE(free == pool.free_pages());
        }
        tables.clear();
        CHECK(pool.free_pages() == 64);
    }
}
