-- Forget jobs that were admitted more than a day ago, and longer ago than $1, and have ended.
-- $1 is how long it takes until any rate has its whole burst again: then a start that was
-- not charged yet makes no difference any more.
-- Clock: now().
-- Locks: their rows. The caller is the one who admits.
-- Index: none, it reads all admitted jobs; ready_pkey and leases_pkey for each.
delete from admitted a
where a.admitted_at < now() - greatest(interval '1 day', $1::interval)
    and not exists (
        select from ready r
        where r.job_type = a.job_type and r.urgency = a.urgency and r.run_at = a.position and r.job_id between a.job_id and a.job_id
    )
    and not exists (select from leases l where l.job_id between a.job_id and a.job_id);
