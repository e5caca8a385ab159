-- Fill in what dead letters lack that were buried without a fingerprint. A job that was
-- requeued meanwhile, and maybe buried again, is left alone.
-- Locks: dead letters in the order sent (the caller sorts by job).
-- Index: dead_letters_pkey.
update dead_letters d
set error_code = b.error_code, fingerprint = b.fingerprint, plugin_version = b.plugin_version
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as b (job_id, error_code, fingerprint, plugin_version)
where d.job_id between b.job_id and b.job_id and d.fingerprint = ''
returning d.job_id;
