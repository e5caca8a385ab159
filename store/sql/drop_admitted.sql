-- Forget jobs that a gate has admitted: they have started, or never will.
-- Clock: none.
-- Locks: their rows. The caller is the one who admits.
-- Index: admitted_pkey.
delete from admitted a using unnest($1::text[], $2::uuid[]) as b (gate, job_id)
where a.gate between b.gate and b.gate and a.job_id between b.job_id and b.job_id;
