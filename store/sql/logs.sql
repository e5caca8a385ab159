-- What the latest $3 attempts of a job have logged, latest first; only attempts of
-- number $2, unless it is null.
-- Index: attempt_logs_pkey.
select attempt as number, fence, lines, dropped
from attempt_logs
where job_id = $1 and ($2::integer is null or attempt = $2)
order by fence desc
limit $3;
