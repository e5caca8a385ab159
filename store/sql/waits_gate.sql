-- What is used of the gate $1, and its limit: that of the scope $2 and the name $3, or else
-- the one for every name. If it has a rate, starting is how many jobs were admitted and have
-- not started, counted up to $4.
-- Index: slots_pkey, limits_pkey, admitted_pkey; each admitted job by ready_pkey.
select coalesce(s.used, 0) as used, s.tokens, s.tokens_at, l.concurrency, l.rate, l.period, l.burst,
    case
        when l.rate is null then 0
        else (
            select count(*) from (
                select from admitted a
                where a.gate = $1 and exists (
                    select from ready r
                    where r.job_type = a.job_type and r.urgency = a.urgency and r.run_at = a.position and r.job_id = a.job_id
                )
                limit $4
            ) starting
        )
    end as starting
from (values ($1::text)) g (gate)
left join slots s on s.gate = g.gate
left join lateral (
    select concurrency, rate, period, burst
    from limits
    where scope = $2 and name in ($3, '*')
    order by name = '*'
    limit 1
) l on true;
