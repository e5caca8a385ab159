-- Put parked jobs on the ready list: queued -> queued. $2 and $3 are their positions, and
-- whether these are turns.
-- Clock: statement_timestamp().
-- Locks: parked rows, which the caller has locked already.
-- Index: parked_pkey.
with batch as (
    select *
    from unnest($1::uuid[], $2::timestamptz[], $3::boolean[]) as b (job_id, position, turn)
), taken as (
    delete from parked p using batch b
    where p.job_id between b.job_id and b.job_id
    returning p.job_id, p.job_type, p.urgency, p.attempt, b.position, b.turn
)
insert into ready (job_id, job_type, urgency, run_at, attempt, turn, admitted_at)
select job_id, job_type, urgency, position, attempt, turn, statement_timestamp() from taken;
