-- A page of schedules, by tenant and name: those after $3 and $4, of tenant $1 unless that
-- is null, of name $2 unless that is null, at most $5.
-- Index: schedules_pkey; jobs_pkey and leases_pkey for the last jobs.
select s.tenant, s.name, s.cron, s.zone, s.every, s.anchor, s.once_at, s.starts_at, s.ends_at, s.jitter, s.overlap, s.catch_up,
    s.catch_up_window, s.job, s.next_at, s.paused_at, s.paused_by, s.pause_reason, s.last_tick, s.last_job, s.last_error,
    s.last_error_at, s.fired, s.skipped, s.missed, s.failed, s.configured, s.created_at, s.updated_by, s.updated_at,
    case when l.job_id is null then j.state::text else 'running' end as last_state
from schedules s
left join jobs j on j.job_id = s.last_job
left join leases l on l.job_id = s.last_job
where ($1::text is null or s.tenant = $1) and ($2::text is null or s.name = $2)
    and (s.tenant, s.name) > ($3::text, $4::text)
order by s.tenant, s.name
limit $5;
