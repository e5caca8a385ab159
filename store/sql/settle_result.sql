-- Why a settle did not return these leases: 'held' still, 'cancel_requested' and held,
-- 'settled' under this very lease (which shows that a commit whose answer was lost did
-- happen), or 'lost'. In the order asked.
-- Index: leases_pkey, jobs_pkey, unsuccessful_attempts_pkey.
select
    case
        when l.cancel_requested then 'cancel_requested'
        when l.job_id is not null then 'held'
        when a.job_id is not null or j.lease_id = h.lease_id then 'settled'
        else 'lost'
    end as result
from unnest($1::uuid[], $2::uuid[], $3::bigint[]) with ordinality
    as h (job_id, lease_id, fence, nth)
left join leases l on l.job_id between h.job_id and h.job_id and l.lease_id = h.lease_id
left join jobs j on j.job_id = h.job_id
left join unsuccessful_attempts a
    on a.job_id between h.job_id and h.job_id and a.fence = h.fence and a.lease_id = h.lease_id
order by h.nth;
