-- Forget jobs that were admitted more than a day ago, and have ended.
-- Clock: now().
-- Locks: their rows. The caller is the one who admits.
-- Index: none, it reads all admitted jobs; ready_pkey and leases_pkey for each.
delete from admitted a
where a.admitted_at < now() - interval '1 day'
    and not exists (
        select from ready r
        where r.job_type = a.job_type and r.urgency = a.urgency and r.run_at = a.position and r.job_id between a.job_id and a.job_id
    )
    and not exists (select from leases l where l.job_id between a.job_id and a.job_id);
