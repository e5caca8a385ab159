-- Forget those ends of jobs $1 since $2 that were tried again in this transaction, and that
-- need not be announced any more: the others were kept again.
-- Clock: now().
-- Locks: the rows, which nobody else changes. The caller is the one who follows.
-- Index: undelivered_pkey.
delete from undelivered u
using unnest($1::uuid[], $2::timestamptz[]) as e (job_id, at)
where u.job_id = e.job_id and u.at = e.at and u.tried_at < now();
