-- Find which of the jobs $1 were never claimed.
-- Clock: none. Fence: none, it only reads; the caller has locked the jobs where they are
-- parked.
-- Index: jobs_pkey.
select j.job_id
from unnest($1::uuid[]) b (job_id)
join jobs j on j.job_id = b.job_id
where j.fence = 0;
