-- Read when the last jobs of fairness keys have their turn. There is a row for each key
-- that has had one.
-- Clock: none. Fence: none, it only reads; the caller is the one who admits.
-- Index: turns_pkey.
select t.job_type, t.urgency, t.key, t.finish
from unnest($1::text[], $2::smallint[], $3::text[]) as k (job_type, urgency, key)
join turns t on t.job_type between k.job_type and k.job_type and t.urgency = k.urgency and t.key between k.key and k.key;
