-- Find out which of the jobs admitted at the gates $1 wait to be claimed, and when the
-- others were: null if they were not, but canceled. A job whose position in the ready list
-- has changed still waits, if it is neither running nor parked. Of one that was requeued
-- after it died, only its attempts know that it was started.
-- Clock: none. Fence: none, it only reads; the caller is the one who admits.
-- Index: admitted_pkey; ready_pkey, leases_pkey, jobs_pkey and parked_pkey for each job,
-- and unsuccessful_attempts_pkey for those that are neither ready nor running and have not
-- started since.
select a.gate, a.job_id,
    r.job_id is not null or l.job_id is null and j.state = 'queued' and not exists (
        select from parked p where p.job_id between a.job_id and a.job_id
    ) as waits,
    coalesce(l.claimed_at, case when j.started_at >= a.admitted_at then j.started_at end, case when r.job_id is null then (
        select max(u.claimed_at) from unsuccessful_attempts u
        where u.job_id between a.job_id and a.job_id and u.claimed_at >= a.admitted_at
    ) end) as started_at
from unnest($1::text[]) g (gate)
join admitted a on a.gate between g.gate and g.gate
left join ready r on r.job_type = a.job_type and r.urgency = a.urgency and r.run_at = a.position
    and r.job_id between a.job_id and a.job_id
left join leases l on l.job_id between a.job_id and a.job_id
left join jobs j on j.job_id = a.job_id;
