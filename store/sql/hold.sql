-- Hold a scheduled job: it stays created, and loses its time.
-- Clock: now().
-- Locks: the timer row, then the ledger row.
-- Index: jobs_pkey, timers_pkey.
with held as (
    update timers t
    set run_at = 'infinity'
    from jobs j
    where t.job_id = $1 and j.job_id = t.job_id and j.state = 'created'
    returning t.job_id
)
update jobs j
set run_at = 'infinity', updated_at = now()
from held h
where j.job_id = h.job_id
returning j.job_id;
