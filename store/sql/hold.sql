-- Hold a scheduled job: it stays created, and loses its time. One that waits for others of its
-- workflow is then held when these have ended.
-- Clock: now().
-- Locks: the row of the job in its workflow, then the timer row, then the ledger row.
-- Index: jobs_pkey, timers_pkey, workflow_jobs_pkey.
with noted as (
    update workflow_jobs w
    set run_at = 'infinity'
    from jobs j
    where j.job_id = $1 and j.followed and j.state = 'created' and w.job_id = j.job_id
    returning w.job_id
), held as (
    update timers t
    set run_at = 'infinity'
    from jobs j
    where t.job_id = $1 and j.job_id = t.job_id and j.state = 'created' and (select count(*) from noted) >= 0
    returning t.job_id
)
update jobs j
set run_at = 'infinity', updated_at = now()
from held h
where j.job_id = h.job_id
returning j.job_id;
