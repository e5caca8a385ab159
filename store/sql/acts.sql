-- Up to $1 acts of the audit log, newest first, after the position $8, $9 unless it is null: of
-- actor $2, action $3 and tenant $4 unless these are empty, of job $5 unless it is null, from
-- $6 on and before $7 unless these are null. Of the three scans, only one is done.
-- Index: audit_log_job, audit_log_tenant or audit_log_at.
with of_job as materialized (
    select * from audit_log
    where job_id = $5::uuid and ($4::text = '' or tenant = $4)
        and ($2::text = '' or actor = $2) and ($3::text = '' or action = $3)
        and at >= coalesce($6::timestamptz, '-infinity') and at < coalesce($7::timestamptz, 'infinity')
        and (at, audit_id) < (coalesce($8::timestamptz, 'infinity'), coalesce($9::bigint, 0))
    order by job_id desc, at desc, audit_id desc
    limit $1
), of_tenant as materialized (
    select * from audit_log
    where $5 is null and $4 <> '' and tenant = $4
        and ($2 = '' or actor = $2) and ($3 = '' or action = $3)
        and at >= coalesce($6, '-infinity') and at < coalesce($7, 'infinity')
        and (at, audit_id) < (coalesce($8, 'infinity'), coalesce($9, 0))
    order by tenant desc, at desc, audit_id desc
    limit $1
), of_all as materialized (
    select * from audit_log
    where $5 is null and $4 = ''
        and ($2 = '' or actor = $2) and ($3 = '' or action = $3)
        and at >= coalesce($6, '-infinity') and at < coalesce($7, 'infinity')
        and (at, audit_id) < (coalesce($8, 'infinity'), coalesce($9, 0))
    order by at desc, audit_id desc
    limit $1
)
select audit_id as id, at, actor, action, coalesce(tenant, '') as tenant, job_id, filter, count, reason, result
from (select * from of_job union all select * from of_tenant union all select * from of_all) a
order by at desc, audit_id desc;
