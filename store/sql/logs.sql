-- What the latest $3 attempts of a job have logged, the latest first; with $2,
-- only of the attempts of that number.
-- Index: attempt_logs_pkey.
select attempt as number, fence, lines, dropped
from attempt_logs
where job_id = $1 and ($2::integer is null or attempt = $2)
order by fence desc
limit $3;
