-- Lock the jobs $1 where they are listed, in the order in which others lock them, so that none
-- moves before this transaction has changed it. The ledger says what became of those that have
-- moved before. Returns how many there are.
-- Clock: none.
-- Locks: workflows of the jobs; then rows of parked in the order of heads.sql: lane, urgency,
-- position, job; then of timers, ready, leases and dead letters in the order of the jobs.
-- Index: workflow_jobs_pkey, workflows_pkey, parked_pkey, timers_pkey, jobs_pkey, ready_pkey,
-- ready_turn, leases_pkey, dead_letters_pkey.
with barred as materialized (
    select w.workflow_id
    from workflows w
    where w.workflow_id = any (array(select wj.workflow_id from workflow_jobs wj where wj.job_id = any ($1::uuid[])))
    order by w.workflow_id for share
), gated as materialized (
    select p.job_id
    from parked p
    where p.job_id = any ($1) and (select count(*) from barred) >= 0
    order by p.lane collate "C", p.urgency, p.position, p.job_id for update
), timed as materialized (
    select t.job_id
    from timers t
    where t.job_id = any ($1) and (select count(*) from gated) >= 0
    order by t.job_id for update
), listed as materialized (
    select r.job_id
    from (
        select job_id, job_type, priority, run_at
        from jobs
        where job_id = any ($1) and state = 'queued' and (select count(*) from timed) >= 0
        order by job_id
    ) j
    cross join lateral (
        select r.job_id
        from ready r
        where r.job_type = j.job_type and r.urgency = -j.priority and r.run_at = j.run_at and r.job_id = j.job_id
            and r.turn is not true
        for update
    ) r
), turned as materialized (
    select r.job_id
    from ready r
    where r.job_id = any ($1) and r.turn and (select count(*) from listed) >= 0
    order by r.job_id for update
), running as materialized (
    select l.job_id
    from leases l
    where l.job_id = any ($1) and (select count(*) from turned) >= 0
    order by l.job_id for update
), dead as materialized (
    select d.job_id
    from dead_letters d
    where d.job_id = any ($1) and (select count(*) from running) >= 0
    order by d.job_id for update
)
select (select count(*) from gated) + (select count(*) from timed) + (select count(*) from listed) + (select count(*) from turned)
    + (select count(*) from running) + (select count(*) from dead);
