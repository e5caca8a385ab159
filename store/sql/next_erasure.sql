-- The oldest erasure that is not finished, for whoever works on it next.
-- Locks: its row, skipping those that others work on.
-- Index: erasures_unfinished.
select erasure_id as id, tenant, job_id as after, asked_at
from erasures
where finished_at is null
order by asked_at, erasure_id
limit 1 for update skip locked;
