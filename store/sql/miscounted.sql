-- Compare the stored slots with the jobs that hold them: those in `ready` and `leases`, and
-- the freed slots in the inbox. There is a row for each gate where they differ: how many too
-- many are stored. All is from one moment, so nobody has to wait meanwhile, and the
-- difference stays right whatever happens next.
-- Clock: none. Fence: none, it only reads.
-- Index: none on the lists, which are read whole; jobs_pkey for each job; slots whole. If
-- nothing is stored, nobody holds a slot, and the lists are not read. Without offset 0, the
-- planner would begin with the whole ledger if it expects few jobs with gates.
with active as (
    select job_id from ready where exists (select from slots)
    union all
    select job_id from leases where exists (select from slots)
), held as (
    select gate
    from active a
    cross join lateral (select gates from jobs j where j.job_id between a.job_id and a.job_id offset 0) j
    cross join unnest(j.gates) gate
    union all
    select gate from wakes cross join unnest(gates) gate where freed
), counted as (
    select gate, used, 0 as held from slots
    union all
    select gate, 0, 1 from held where gate like 'key:%' or gate like 'tenant:%' or gate like 'type:%'
)
select gate, (sum(used) - sum(held))::integer as surplus
from counted
group by gate
having sum(used) <> sum(held);
