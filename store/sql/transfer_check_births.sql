-- Refuse jobs that are inserted in other states than those of new jobs, again.
-- Clock: none.
-- Locks: jobs, which transfer_allow_births.sql has locked.
-- Index: none.
alter table jobs enable trigger jobs_legal_birth;
