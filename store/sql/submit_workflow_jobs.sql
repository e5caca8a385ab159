-- Store what a new workflow $1 knows of its jobs.
-- Locks: none but the new rows.
-- Index: none.
insert into workflow_jobs (job_id, workflow_id, position, name, on_death, missing, run_at, delay)
select job_id, $1, position, name, on_death, missing, case when hold then 'infinity' else run_at end, delay
from unnest($2::uuid[], $3::integer[], $4::text[], $5::text[], $6::integer[], $7::timestamptz[], $8::interval[], $9::boolean[])
    as i (job_id, position, name, on_death, missing, run_at, delay, hold);
