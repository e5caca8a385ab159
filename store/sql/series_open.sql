-- How many jobs are open now, of all types or of type $1: those that wait or run.
-- Index: ready, parked, timers and leases are read whole; each running job's ledger row by
-- jobs_pkey, if it is of one type.
select (select count(*) from ready where $1::text = '' or job_type = $1)
    + (select count(*) from parked where $1 = '' or job_type = $1)
    + (select count(*) from timers where $1 = '' or job_type = $1)
    + (select count(*) from leases l where $1 = '' or (select j.job_type from jobs j where j.job_id = l.job_id) = $1) as jobs;
