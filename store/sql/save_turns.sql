-- Store the virtual times of queues, and when the last jobs of fairness keys have their
-- turn. They never go back.
-- Clock: none.
-- Locks: their rows. The caller is the one who admits.
-- Index: turns_pkey.
insert into turns as t (job_type, urgency, key, start, finish)
select * from unnest($1::text[], $2::smallint[], $3::text[], $4::timestamptz[], $5::timestamptz[])
on conflict (job_type, urgency, key) do update
set start = greatest(t.start, excluded.start), finish = greatest(t.finish, excluded.finish);
