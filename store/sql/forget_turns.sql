-- Forget fairness keys whose last turn is over: they begin with the virtual time of their
-- queue, as if they were new.
-- Clock: none.
-- Locks: their rows. The caller is the one who admits.
-- Index: turns_pkey; it reads all turns.
delete from turns t using turns q
where q.job_type between t.job_type and t.job_type and q.urgency = t.urgency and q.key = ''
    and t.key <> '' and t.finish <= q.start;
