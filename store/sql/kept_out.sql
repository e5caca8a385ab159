-- The jobs that keep the submissions $2 with the digests $1 out. Those that keep
-- themselves out were stored.
-- Index: unique_keys_pkey, jobs_pkey, leases_pkey.
select i.job_id as submitted_id, j.job_id, j.job_type, j.state::text as state, j.created_at, j.updated_at
from unnest($1::bytea[], $2::uuid[]) as i (digest, job_id)
join unique_keys u on u.digest between i.digest and i.digest
cross join lateral (
    select * from current_jobs c where c.job_id = u.job_id
    offset 0
) j
where u.job_id <> i.job_id;
