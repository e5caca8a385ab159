-- Everything about a job except its lease id and its attempts, for operators. A held
-- job has no time, and a job that is not running has no lease. Of its resubmissions, the
-- newest $2.
-- Index: jobs_pkey, leases_pkey, jobs_resubmissions, workflow_jobs_pkey.
select j.job_id as id, j.job_type as type, j.tenant, j.state::text as state, j.created_at, j.updated_at, j.started_at,
    j.finished_at, j.erased_at, j.progress::text as progress, j.result::text as result, j.payload::text as payload,
    j.checkpoint::text as checkpoint, coalesce(j.idempotency_key, '') as idempotency_key, j.tags,
    j.priority, (select p.parent_id from jobs p where p.job_id = j.job_id) as parent_id,
    coalesce((select c.callback_url from jobs c where c.job_id = j.job_id), '') as callback,
    (select o.resubmission_of from jobs o where o.job_id = j.job_id) as original_id,
    array(
        select r.job_id
        from jobs r
        where r.resubmission_of = j.job_id
        order by r.resubmission_of desc, r.job_id desc
        limit $2
    ) as resubmissions,
    (select w.workflow_id from workflow_jobs w where w.job_id = j.job_id) as workflow_id,
    nullif(j.run_at, 'infinity') as due_at, j.expires_at as lapses_at, coalesce(j.terms, '{}') as terms,
    j.attempt as charged, j.max_attempts, j.interruptions, j.crashes,
    j.fence, j.timeout, coalesce(j.last_error, '') as last_error, coalesce(j.worker_id, '') as worker,
    j.trace_parent, j.trace_state, l.worker_id as lease_worker, l.claimed_at,
    case when l.kept then coalesce((select w.alive_until from workers w where w.worker_id = l.worker_id), l.claimed_at) else l.expires_at end as expires_at,
    l.cancel_requested as canceling, l.claimed_at + l.began_ms * interval '1 ms' as began_at
from current_jobs j
left join leases l on l.job_id = j.job_id
where j.job_id = $1;
