-- What lists of jobs are read by.
--
-- The index on the type costs a submission about a tenth of its WAL; the one
-- on the tenant nothing where no tenants are named. Both only grow: nothing in
-- them ever changes.

-- +goose Up
create index jobs_type on jobs (job_type, job_id);
create index jobs_tenant on jobs (tenant, job_id) where tenant <> 'default';

-- So that dead letters are found without a look into the ledger.
alter table dead_letters
    add column job_type text not null default '',
    add column tenant text not null default '';
update dead_letters d set job_type = j.job_type, tenant = j.tenant
from jobs j where j.job_id = d.job_id;

-- When the worker was last heard of.
alter table workers add column heartbeat_at timestamptz not null default now();

-- +goose Down
alter table workers drop column heartbeat_at;
alter table dead_letters drop column job_type, drop column tenant;
drop index jobs_type, jobs_tenant;
