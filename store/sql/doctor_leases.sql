-- Leases that should not exist, by what is wrong with them: how many, and one of their
-- jobs. Those that expired longer than $1 ago should be taken over. An owner that has
-- been unknown or signed off for that long cannot settle. A lease whose claim was never
-- answered has no owner, and its worker's name says so.
-- Clock: now().
-- Index: jobs_pkey, workers_pkey; leases is read whole, but it is small.
select finding, problem, count(*) as leases, (array_agg(job_id order by expires_at, job_id))[1] as example
from (
    select l.job_id, e.expires_at, j.fence + 1 <> l.fence or e.expires_at < now() - $1::interval as problem,
        case
            when j.fence + 1 <> l.fence then 'with another fence than its job'
            when e.expires_at < now() - $1::interval then 'expired more than a minute ago and not taken over'
            when w.worker_id is null and l.claimed_at < now() - $1::interval
                and l.worker_id not like '% (claim unanswered)' then 'of an unknown worker'
            when w.stopped_at < now() - $1::interval then 'of a worker that has signed off'
        end as finding
    from leases l
    join jobs j on j.job_id = l.job_id
    left join workers w on w.worker_id = l.worker_id
    cross join lateral (
        select case when l.kept then coalesce(w.alive_until, l.claimed_at) else l.expires_at end as expires_at
    ) e
) judged
where finding is not null
group by problem, finding
order by problem desc, finding;
