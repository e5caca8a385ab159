-- Make the planner read a page of List, and the place where its scan ends, in the
-- order of an index, in this transaction only. From version 18 on, the server may
-- otherwise skip through an index of another order, read the whole ledger, and sort.
-- Index: none; a setting.
select set_config('enable_sort', 'off', true);
