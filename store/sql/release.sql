-- Release a held or scheduled job: created -> queued, due now.
-- Clock: now().
-- Locks: the timer row, then the ledger row.
-- Index: jobs_pkey, timers_pkey.
with freed as (
    delete from timers t using jobs j
    where t.job_id = $1 and j.job_id = t.job_id and j.state = 'created'
    returning t.job_id
), queued as (
    update jobs j
    set state = 'queued', run_at = now(), updated_at = now()
    from freed f
    where j.job_id = f.job_id
    returning j.job_id, j.job_type, j.priority, j.run_at
)
insert into ready (job_id, job_type, urgency, run_at)
select job_id, job_type, -priority, run_at from queued
returning job_id;
