-- Give up the digests $1 that this transaction has claimed for the jobs $2, unless it has
-- made the job: then another job had the submission's idempotency key after all.
-- Locks: digests that are locked already.
-- Index: unique_keys_pkey, jobs_pkey.
delete from unique_keys u
using unnest($1::bytea[], $2::uuid[]) as i (digest, job_id)
where u.digest between i.digest and i.digest and u.job_id = i.job_id
    and (select j.job_id from jobs j where j.job_id = i.job_id) is null;
