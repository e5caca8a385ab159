-- What delete_ended.sql and delete_dead.sql would do now, from a sample of $6 percent of the
-- ledger's pages: jobs by type, state and fate. The other arguments are as there: the types,
-- and times for jobs that succeeded, were canceled or are dead, and for keys.
-- Clock: now().
-- Index: none; each page of the sample is read whole. unique_keys_job.
select job_type as type, state::text as state, fate, count(*) as jobs, sum(bytes)::bigint as bytes, min(finished_at) as oldest
from (
    select d.job_type, d.state, d.finished_at, d.bytes,
        case
            when d.finished_at is null then 'open'
            when d.over is null then 'keep'
            when d.finished_at > d.over then 'young'
            when d.followed then 'needed'
            when not d.needed then 'delete'
            when d.erased_at is null then 'blank'
            else 'key'
        end as fate
    from (
        select j.job_type, j.state, j.finished_at, j.erased_at,
            j.followed and (
                j.job_id in (select job_id from ends union all select job_id from undelivered where given_up_at is null)
                or exists (
                    select from (select wj.workflow_id from workflow_jobs wj where wj.job_id = j.job_id offset 0) member
                    join workflows w on w.workflow_id = member.workflow_id
                    where w.finished_at is null
                )
            ) as followed,
            160 + pg_column_size(j.payload) + coalesce(pg_column_size(j.result), 0) + coalesce(pg_column_size(j.progress), 0)
                + coalesce(pg_column_size(j.checkpoint), 0) + coalesce(pg_column_size(j.last_error), 0) + pg_column_size(j.tags)
                + pg_column_size(j.trace_parent) + pg_column_size(j.trace_state) as bytes,
            now() - case j.state
                when 'succeeded' then ($2::interval[])[p.nth] when 'canceled' then ($3::interval[])[p.nth] when 'dead' then ($4::interval[])[p.nth]
            end as over,
            j.idempotency_key is not null and not coalesce(j.finished_at <= now() - ($5::interval[])[p.nth], false)
                or (select u.job_id from unique_keys u where u.job_id = j.job_id and u.expires_at is not null and u.expires_at > now() limit 1) is not null
                as needed
        from jobs j tablesample system ($6::real)
        cross join lateral (select coalesce(array_position($1::text[], j.job_type), 1) as nth) p
    ) d
) judged
group by job_type, state, fate
order by job_type, state, fate;
