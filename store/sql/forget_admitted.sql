-- Forget the jobs of the gates $1 that have ended.
-- Clock: none.
-- Locks: their rows. The caller is the one who admits.
-- Index: admitted_pkey; ready_pkey and leases_pkey for each job.
delete from admitted a using unnest($1::text[]) as b (gate)
where a.gate between b.gate and b.gate
    and not exists (
        select from ready r
        where r.job_type = a.job_type and r.urgency = a.urgency and r.run_at = a.position and r.job_id between a.job_id and a.job_id
    )
    and not exists (select from leases l where l.job_id between a.job_id and a.job_id);
