-- When the last of $2 slots of $1 each, the current one, began, and what time it is.
-- Clock: now().
-- Index: none.
select now() as at, date_bin($1::interval, now(), 'epoch') - ($2::integer - 1) * $1::interval as start;
