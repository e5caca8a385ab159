-- Note that the jobs $1 have ended, in the states $2, unless that is known. A dead job has only
-- ended if its workflow is canceled. Returns those for which it is news.
-- Clock: none.
-- Locks: rows of workflow_jobs; the caller is the one who follows.
-- Index: workflow_jobs_pkey, workflows_pkey.
update workflow_jobs wj
set ended = i.state::job_state
from unnest($1::uuid[], $2::text[]) as i (job_id, state), workflows w
where wj.job_id between i.job_id and i.job_id and w.workflow_id = wj.workflow_id and wj.ended is null
    and (i.state <> 'dead' or w.canceled_at is not null)
returning wj.job_id, wj.workflow_id, wj.ended::text as state, coalesce(w.on_complete = wj.job_id, false) as completes;
